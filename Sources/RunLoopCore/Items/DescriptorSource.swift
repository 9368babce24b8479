// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// A source that waits for a file descriptor (version 1).
  ///
  /// It is level-triggered: as long as the descriptor is ready, each pass may call the handler, which may read or write
  /// as it likes; the loop itself never touches the descriptor. Several sources may watch one descriptor, for the same
  /// or for different events; they take turns. A source may be in any number of modes of any number of loops.
  ///
  /// Invalidate the source before closing its descriptor. If the descriptor is closed and its number is reused
  /// meanwhile, a source that is added for that number watches the new file.
  ///
  /// The corresponding Core Foundation type is `CFFileDescriptor`, or `CFRunLoopSource` of version 1.
  public final class DescriptorSource: @unchecked Sendable {
    // Sendable: the memberships are guarded by the lock, the handler by the reference; the interest is changed under
    // the lock.

    /// What a descriptor can be ready for.
    public struct Events: OptionSet, Hashable, Sendable {
      /// The raw value.
      public let rawValue: UInt8

      /// Makes a value from its raw value.
      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// There is something to read, or the end.
      public static let readable = Events(rawValue: 1 << 0)
      /// There is room to write.
      public static let writable = Events(rawValue: 1 << 1)
      /// The other end has closed.
      ///
      /// When it has closed both directions, every source of the descriptor is notified, whether or not the source
      /// asked for it; when it has only stopped writing, only the sources that asked for it are notified.
      public static let hangUp = Events(rawValue: 1 << 2)
      /// An error has happened.
      ///
      /// Every source of the descriptor is notified.
      public static let error = Events(rawValue: 1 << 3)
    }

    /// The descriptor that the source waits for.
    ///
    /// It belongs to the caller.
    public let descriptor: Int32
    /// Whether the source stays valid when its handler is called.
    public let repeats: Bool

    let lock = Lock()
    /// What the source waits for, and whether it is paused.
    ///
    /// Relaxed: the value is all that is read of it, and changes are ordered by the lock. A loop that reads an old one
    /// is called once more by the kernel, whose set is changed after it.
    let interest: Atomic<Interest>
    private let reference = HandlerReference()
    // Not checked for exclusive access: the memberships are read and changed under the lock, and only by functions that
    // call nothing else of the source; the handler is changed once, by the thread that closes the reference or leaves
    // it last.
    @exclusivity(unchecked) private(set) var memberships = Memberships<DescriptorSource>()
    @exclusivity(unchecked) private var handler: Handler?
    /// What the source is for, if a layer above has made it; guarded as the handler.
    @exclusivity(unchecked) private var carried: (any CarriedItem)?

    /// Wrapped as ``Block`` is.
    private struct Call {
      let body: @Sendable (DescriptorSource, Events) -> Void
    }

    /// Not copied: a call needs no reference to the closure other than the source's, which the handler reference keeps.
    private struct Handler: ~Copyable {
      let call: Call
    }

    /// Makes a source that is in no mode.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor to wait for. It is checked when the source is added.
    ///   - events: What to wait for.
    ///   - repeats: Whether the source stays valid when its handler is called. If not, the source is invalidated just
    ///     before its only call, which the first loop that finds the descriptor ready makes, in any mode.
    ///   - handler: Called on a loop's thread with the source and what the descriptor is ready for. It is released when
    ///     the source is invalid and no call-out runs.
    public init(
      descriptor: Int32, events: Events, repeats: Bool = true,
      handler: @escaping @Sendable (DescriptorSource, Events) -> Void
    ) {
      self.descriptor = descriptor
      self.repeats = repeats
      self.interest = Atomic(Interest(events: events))
      self.handler = Handler(call: Call(body: handler))
    }

    /// Makes a source for an item of a layer above, and holds the item as it holds the handler.
    package convenience init(
      descriptor: Int32, events: Events, carrying item: any CarriedItem,
      handler: @escaping @Sendable (DescriptorSource, Events) -> Void
    ) {
      self.init(descriptor: descriptor, events: events, handler: handler)
      carried = item
    }

    /// Whether the source can still be added and called.
    ///
    /// Can be used from any thread.
    public var isValid: Bool { reference.isOpen }

    /// Ends the source permanently: it leaves all modes of all loops and is not called again.
    ///
    /// The handler is released at once, or when its running call-out has returned. The descriptor stays open. Can be
    /// called from any thread. Calling it again has no effect.
    public func invalidate() {
      lock.lock()
      let closing = reference.close()
      let loops = memberships.loops
      lock.unlock()
      guard closing != .already else { return }
      for loop in loops { loop.expel(self) }
      if closing == .release { releaseHandler() }
    }
  }
}

extension RunLoop.DescriptorSource {
  /// Calls the handler unless the source is invalid; called on the loop's thread.
  func call(_ events: Events) -> Bool {
    if repeats {
      guard reference.enter() else { return false }
    } else {
      // The mark stays: of several loops that have found the descriptor ready, only one calls.
      guard reference.enterMarking() else { return false }
      invalidate()
    }
    switch handler {
    case .some(let handler): runLoopIsCallingOutToASource1(handler.call.body, self, events)
    case nil: break
    }
    letGo()
    return true
  }

  /// The user's function; used on the loop's thread, which is about to call it.
  var code: UInt64 {
    switch handler {
    case .some(let handler): ClosureCode.first(of: handler.call)
    case nil: 0
    }
  }

  private func releaseHandler() {
    _ = handler.take()
    _ = carried.take()
  }

  /// What the source is for, if a layer above has made it.
  ///
  /// The caller holds the source.
  var carriedItem: (any CarriedItem)? { carried }
}

extension RunLoop.DescriptorSource: ModeItem {
  func lockItem() { lock.lock() }
  func unlockItem() { lock.unlock() }
  func hold() -> Bool { reference.enter() }
  func letGo() { if reference.leave() { releaseHandler() } }
  var isOpen: Bool { reference.isOpen }
  func setCommon(_ isCommon: Bool, of loop: RunLoop) { memberships.setCommon(isCommon, of: loop) }
  func modes(of loop: RunLoop) -> ShortList<ModeState> { memberships.modes(of: loop) }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { mode.descriptors[ObjectIdentifier(self)] != nil }

  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) throws(SystemError) {
    let membership = Membership(self, loop: loop, mode: mode)
    try mode.insert(membership, in: table.pollSet(of: mode))
    memberships.insert(membership)
  }

  func leave(_ mode: ModeState, of loop: RunLoop) {
    guard let membership = mode.removeDescriptorSource(self) else { return }
    memberships.remove(membership)
    loop.forgetPlace(of: self)
  }
}

extension RunLoop.DescriptorSource: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    "<RunLoop.DescriptorSource \(addressDescription(self))>{valid = \(yesOrNo(isValid)), version = 1, "
      + "descriptor = \(descriptor), events = \(events), paused = \(yesOrNo(isPaused)), "
      + "\(callOutDescription(heldCode { carried?.keepAliveCode ?? code }))}"
  }
}

extension RunLoop.DescriptorSource.Events: CustomStringConvertible {
  /// The names of the events.
  public var description: String {
    let names: [(Self, String)] = [
      (.readable, "readable"), (.writable, "writable"), (.hangUp, "hangUp"), (.error, "error"),
    ]
    return "[" + names.filter { contains($0.0) }.map(\.1).joined(separator: ", ") + "]"
  }
}
