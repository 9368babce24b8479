// SPDX-License-Identifier: Apache-2.0

// A package's module with a type whose name RunLoopKit exports too, and one whose name another product of ours has.
/// A socket.
public final class Socket {
  /// Makes one.
  public init() {}
}

/// A loop.
public final class MainLoop {
  /// Makes one.
  public init() {}
}

/// An address.
public struct Address {
  /// Makes one.
  public init() {}
}
