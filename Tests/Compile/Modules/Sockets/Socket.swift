// SPDX-License-Identifier: Apache-2.0

// A package's module with a type whose name RunLoopKit exports too.
public final class Socket {
  public init() {}
}

public struct Address {
  public init() {}
}
