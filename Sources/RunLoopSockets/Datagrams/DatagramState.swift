// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a datagram socket waits for, as a value: each event is a mutating function, effects lie elsewhere.
struct DatagramState: Hashable {
  enum Phase: Hashable {
    case open
    /// It is over, and its handler is yet to be notified.
    case closing(DatagramError)
    case closed
  }

  /// How a sender that found no room is notified when there may be some.
  enum Room: Hashable {
    case notAwaited
    /// By the descriptor.
    case byDescriptor
    /// By trying again: whether another socket's queue has room the system does not report.
    case byTime
  }

  private(set) var phase = Phase.open { didSet { isOpen = phase == .open } }
  /// Whether it is open, which is looked at for every datagram: the phase has an error beside it.
  private(set) var isOpen = true
  private(set) var room = Room.notAwaited
  var isPaused = false
  /// The system had no memory for what has arrived: it is asked again later.
  var isExhausted = false
  var hasHandler = false
  var hasWaiter = false
  var batch = DatagramBatch()

  var isOver: Bool { !isOpen }

  var receives: Bool { isOpen && !isExhausted && (hasWaiter || hasHandler && !isPaused) }

  /// What is to be waited for; nil: nothing.
  var interest: RunLoop.DescriptorSource.Events? {
    guard isOpen else { return nil }
    var events: RunLoop.DescriptorSource.Events = []
    if receives { events.insert(.readable) }
    if room == .byDescriptor { events.insert(.writable) }
    return events.isEmpty ? nil : events
  }

  mutating func awaitRoom(byTime: Bool) { room = byTime ? .byTime : .byDescriptor }

  /// Takes the debt of reporting that there may be room.
  mutating func takeRoom() -> Bool {
    defer { room = .notAwaited }
    return room != .notAwaited
  }

  mutating func close(_ error: DatagramError) {
    if phase == .open { phase = .closing(error) }
  }

  /// Nobody is notified any more; returns whether somebody still was to be.
  mutating func finish() -> Bool {
    defer { phase = .closed }
    return phase != .closed
  }
}
