// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The name of a mode: the set of sources, timers, observers and ports that one run of a loop serves.
  ///
  /// Modes are equal when their names are. A mode is made when something is added to it and stays as long as its loop.
  public struct Mode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The raw value.
    public let rawValue: String

    /// Names a mode.
    @inlinable
    public init(_ rawValue: String) {
      self.rawValue = rawValue
    }

    /// Makes a value from its raw value.
    @inlinable
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// Makes a value from its raw value.
    @inlinable
    public init(stringLiteral value: String) {
      self.rawValue = value
    }

    // Computed, so that a client has the text as a constant, without reference counting.

    /// The mode that a loop is in when nothing asks for another.
    ///
    /// The corresponding Core Foundation constant is `kCFRunLoopDefaultMode`.
    @inlinable public static var `default`: Mode { Mode("kCFRunLoopDefaultMode") }
    /// Stands for all modes that were made common, where items are added and blocks are posted.
    ///
    /// It is not a mode that a loop can run. The corresponding Core Foundation constant is `kCFRunLoopCommonModes`.
    @inlinable public static var common: Mode { Mode("kCFRunLoopCommonModes") }
    /// The mode while a control follows the user, as UIKit names it.
    @inlinable public static var tracking: Mode { Mode("UITrackingRunLoopMode") }
    /// The mode until an application has been set up, as UIKit names it.
    @inlinable public static var initialization: Mode { Mode("UIInitializationRunLoopMode") }
    /// The mode for receiving the system's events, as UIKit names it.
    @inlinable public static var eventReceive: Mode { Mode("GSEventReceiveRunLoopMode") }
  }
}

extension RunLoop.Mode: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { rawValue }
}
