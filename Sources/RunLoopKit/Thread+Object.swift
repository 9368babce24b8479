public import RunLoopThreads

// What threads have from NSObject in Foundation. Beside these members they are Hashable, by identity, as there.
extension RunLoopThreads.Thread {
  /// The text for a person: the thread's name and state.
  ///
  /// Any thread. The corresponding Foundation property is `NSObject.description`.
  public var description: String { debugDescription }

  /// A number that is the same for the same thread.
  ///
  /// The corresponding Foundation property is `NSObject.hash`.
  public var hash: Int { hashValue }

  /// Whether `object` is this thread.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  public func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}
