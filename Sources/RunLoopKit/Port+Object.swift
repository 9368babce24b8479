public import RunLoopCore

// What ports have from NSObject in Foundation. Beside these members they are Hashable, by identity, as there.
extension RunLoopCore.Port {
  /// The text for a person: the port's state.
  ///
  /// Any thread. The corresponding Foundation property is `NSObject.description`.
  public var description: String { debugDescription }

  /// A number that is the same for the same port.
  ///
  /// The corresponding Foundation property is `NSObject.hash`.
  public var hash: Int { hashValue }

  /// Whether `object` is this port.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  public func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}
