// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a datagram socket waits for, as a value: each event is a mutating function, effects lie elsewhere.
struct DatagramState: Hashable {
  enum Phase: Hashable {
    case open
    /// It is over, and its handler is yet to be told.
    case closing(DatagramError)
    case closed
  }

  /// How a sender that found no room is told when there may be some.
  enum Room: Hashable {
    case notAwaited
    /// By the descriptor.
    case byDescriptor
    /// By trying again: whether another socket's queue has room the system does not report.
    case byTime
  }

  private(set) var phase = Phase.open
  private(set) var room = Room.notAwaited
  var isPaused = false
  /// The system had no memory for what has arrived: it is asked again later.
  var isExhausted = false
  var hasHandler = false
  var hasWaiter = false

  /// How many services have found one datagram each, and whether the last found several: looking for a further one costs a
  /// system call, which is worth it only while they come in numbers.
  private var services: UInt8 = 0
  private var isBusy = false

  /// How many datagrams a service may take before the loop looks at something else.
  static let batch = 16
  private static let probe: UInt8 = 8

  var isOver: Bool { phase != .open }

  var receives: Bool { phase == .open && !isExhausted && (hasWaiter || hasHandler && !isPaused) }

  /// What is to be waited for; nil: nothing.
  var interest: RunLoop.DescriptorSource.Events? {
    guard phase == .open else { return nil }
    var events: RunLoop.DescriptorSource.Events = []
    if receives { events.insert(.readable) }
    if room == .byDescriptor { events.insert(.writable) }
    return events.isEmpty ? nil : events
  }

  /// How many datagrams to take now.
  mutating func beginService() -> Int {
    guard !isBusy else { return Self.batch }
    services &+= 1
    return services % Self.probe == 0 ? Self.batch : 1
  }

  mutating func endService(taken: Int) { isBusy = taken > 1 }

  mutating func awaitRoom(byTime: Bool) { room = byTime ? .byTime : .byDescriptor }

  /// Takes the debt of telling that there may be room.
  mutating func takeRoom() -> Bool {
    defer { room = .notAwaited }
    return room != .notAwaited
  }

  mutating func close(_ error: DatagramError) {
    if phase == .open { phase = .closing(error) }
  }

  /// Nobody is told any more; gives whether somebody still was to be.
  mutating func finish() -> Bool {
    defer { phase = .closed }
    return phase != .closed
  }
}
