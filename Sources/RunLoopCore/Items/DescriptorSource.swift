// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop {
  /// A source that waits for events of a file descriptor (version 1).
  ///
  /// The source is level-triggered: as long as the descriptor is ready, each pass may call the handler, which is free
  /// to read and write. The loop itself never reads from or writes to the descriptor. Several sources can watch one
  /// descriptor, for the same or different events; they take turns. A source can be in any number of modes of any
  /// number of loops.
  ///
  /// Invalidate the source before you close its descriptor. If the descriptor is closed and its number reused first, a
  /// source added for that number watches the new file.
  ///
  /// The corresponding Core Foundation type is `CFFileDescriptor`, or `CFRunLoopSource` of version 1.
  public final class DescriptorSource: @unchecked Sendable {
    // Sendable: the lock guards the memberships and changes of the interest, and the reference guards the handler.

    /// The events of a descriptor.
    public struct Events: OptionSet, Hashable, Sendable {
      /// The raw value.
      public let rawValue: UInt8

      /// Creates a value from its raw value.
      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// Data can be read, or end of file has been reached.
      public static let readable = Events(rawValue: 1 << 0)
      /// Data can be written.
      public static let writable = Events(rawValue: 1 << 1)
      /// The peer has closed the connection.
      ///
      /// If both directions are closed, every source of the descriptor is notified, whether or not it asked for this
      /// event. If the peer has only stopped writing, only the sources that asked for it are notified.
      public static let hangUp = Events(rawValue: 1 << 2)
      /// An error has occurred.
      ///
      /// Every source of the descriptor is notified of errors.
      public static let error = Events(rawValue: 1 << 3)
    }

    /// The descriptor that the source waits for.
    ///
    /// The caller owns the descriptor.
    public let descriptor: Int32
    /// Whether the source remains valid after its handler was called.
    public let repeats: Bool

    let lock = Lock()
    /// The events that the source waits for, and whether it is paused.
    ///
    /// Relaxed ordering suffices: no other data depends on the value, and the lock orders changes. If a loop reads an
    /// old value, the kernel reports the descriptor once more, because its set is updated afterwards.
    let interest: Atomic<Interest>
    private let reference = HandlerReference()
    // Exclusive access is not checked. The lock guards the memberships, and the functions that use them call nothing
    // else of the source. The handler changes only once, by the thread that closes the reference or is the last to
    // leave it.
    @exclusivity(unchecked) private(set) var memberships = Memberships<DescriptorSource>()
    @exclusivity(unchecked) private var handler: Handler?
    /// The item of a higher layer that this source serves, if any; guarded like the handler.
    @exclusivity(unchecked) private var carried: (any CarriedItem)?

    /// Wrapped in the same way as ``Block``.
    private struct Call {
      let body: @Sendable (DescriptorSource, Events) -> Void
    }

    /// Noncopyable: the source's own reference to the closure, which the handler reference protects, suffices for a
    /// call.
    private struct Handler: ~Copyable {
      let call: Call
    }

    /// Creates a source that is in no mode.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor to wait for. It is validated when the source is added to a mode.
    ///   - events: The events to wait for.
    ///   - repeats: Whether the source remains valid after its handler was called. If not, the source is invalidated
    ///     just before its only call, which is made in any mode by the first loop that finds the descriptor ready.
    ///     Defaults to `true`.
    ///   - handler: Called on a loop's thread with the source and the descriptor's ready events. It is released once
    ///     the source is invalid and no call-out is running.
    public init(
      descriptor: Int32, events: Events, repeats: Bool = true,
      handler: @escaping @Sendable (DescriptorSource, Events) -> Void
    ) {
      self.descriptor = descriptor
      self.repeats = repeats
      self.interest = Atomic(Interest(events: events))
      self.handler = Handler(call: Call(body: handler))
    }

    /// Creates a source for an item of a higher layer, and retains the item as long as the handler.
    package convenience init(
      descriptor: Int32, events: Events, carrying item: any CarriedItem,
      handler: @escaping @Sendable (DescriptorSource, Events) -> Void
    ) {
      self.init(descriptor: descriptor, events: events, handler: handler)
      carried = item
    }

    /// Whether the source can still be added and called.
    ///
    /// Initially `true`. Can be read from any thread.
    public var isValid: Bool { reference.isOpen }

    /// Removes the source from all modes of all loops permanently and prevents further calls to its handler.
    ///
    /// The handler is released immediately or, if it is running, when it returns. The descriptor stays open. Can be
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
  /// Calls the handler unless the source is invalid; must be called on the loop's thread.
  func call(_ events: Events) -> Bool {
    if repeats {
      guard reference.enter() else { return false }
    } else {
      // The mark is never cleared, so only one of the loops that found the descriptor ready makes the call.
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

  /// The address of the user's function (used only on the loop's thread, which is about to call it).
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

  /// The item of a higher layer that this source serves, if any.
  ///
  /// The caller must hold the source.
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
  /// A description of the source's state, formatted like Core Foundation's.
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
