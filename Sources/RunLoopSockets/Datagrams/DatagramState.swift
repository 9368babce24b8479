// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The state machine of a datagram socket, as a value: each event is a mutating function, and effects are implemented
/// elsewhere.
struct DatagramState: Hashable {
  enum Phase: Hashable {
    case open
    /// The socket is over, and its handler has not been notified yet.
    case closing(DatagramError)
    case closed
  }

  /// How to notify a sender that found no room when there may be some.
  enum Room: Hashable {
    case notAwaited
    /// Wait for the descriptor.
    case byDescriptor
    /// Try again after a time, because the system does not report when another socket's queue has room.
    case byTime
  }

  private(set) var phase = Phase.open { didSet { isOpen = phase == .open } }
  /// Cached for each datagram, because comparing `phase` involves its error.
  private(set) var isOpen = true
  /// The error that closed the socket, for tasks that use it afterwards; nil if it was invalidated.
  private(set) var endError: DatagramError?
  private(set) var room = Room.notAwaited
  var isPaused = false
  /// Whether receiving is suspended because the system lacked memory for a datagram that arrived.
  var isExhausted = false
  var hasHandler = false
  var hasWaiter = false
  var batch = DatagramBatch()

  var isOver: Bool { !isOpen }

  var receives: Bool { isOpen && !isExhausted && (hasWaiter || hasHandler && !isPaused) }

  /// The events to watch for, or `nil` for none.
  var interest: RunLoop.DescriptorSource.Events? {
    guard isOpen else { return nil }
    var events: RunLoop.DescriptorSource.Events = []
    if receives { events.insert(.readable) }
    if room == .byDescriptor { events.insert(.writable) }
    return events.isEmpty ? nil : events
  }

  mutating func awaitRoom(byTime: Bool) { room = byTime ? .byTime : .byDescriptor }

  /// Clears the pending notification of room, and returns whether there was one.
  mutating func takeRoom() -> Bool {
    defer { room = .notAwaited }
    return room != .notAwaited
  }

  mutating func close(_ error: DatagramError) {
    if phase == .open { phase = .closing(error) }
  }

  /// Ends all notifications, and returns whether the end had not been reported yet.
  mutating func finish(isInvalidated: Bool) -> Bool {
    guard phase != .closed else { return false }
    if !isInvalidated, case .closing(let error) = phase { endError = error }
    phase = .closed
    return true
  }
}
