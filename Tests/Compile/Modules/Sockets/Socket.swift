// SPDX-License-Identifier: Apache-2.0

// A module with a type whose name RunLoopKit exports too, and one whose name another product of this package uses.
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
