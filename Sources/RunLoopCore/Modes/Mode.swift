// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The name of a mode: a set of sources, timers, observers and ports that a run of a loop serves.
  ///
  /// Modes with equal names are equal. A mode is created when something is added to it and exists as long as its loop.
  public struct Mode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The raw value.
    public let rawValue: String

    /// Creates a mode with a name.
    @inlinable
    public init(_ rawValue: String) {
      self.rawValue = rawValue
    }

    /// Creates a mode from its raw value.
    @inlinable
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// Creates a mode from a string literal.
    @inlinable
    public init(stringLiteral value: String) {
      self.rawValue = value
    }

    // Computed properties, so that the text is a constant in clients and needs no reference counting.

    /// The mode in which a loop runs by default.
    ///
    /// The corresponding Core Foundation constant is `kCFRunLoopDefaultMode`.
    @inlinable public static var `default`: Mode { Mode("kCFRunLoopDefaultMode") }
    /// The pseudo-mode that stands for all common modes when items are added or blocks are posted.
    ///
    /// A loop cannot be run in it. The corresponding Core Foundation constant is `kCFRunLoopCommonModes`.
    @inlinable public static var common: Mode { Mode("kCFRunLoopCommonModes") }
    /// The mode in which a control tracks user input, as named by UIKit.
    @inlinable public static var tracking: Mode { Mode("UITrackingRunLoopMode") }
    /// The mode used until an application has been set up, as named by UIKit.
    @inlinable public static var initialization: Mode { Mode("UIInitializationRunLoopMode") }
    /// The mode for receiving system events, as named by UIKit.
    @inlinable public static var eventReceive: Mode { Mode("GSEventReceiveRunLoopMode") }
  }
}

extension RunLoop.Mode: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { rawValue }
}
