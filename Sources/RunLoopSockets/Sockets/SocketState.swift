// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Where a socket is in its life, as a value: each event is a mutating function, effects lie elsewhere.
struct SocketState: Hashable {
  enum Phase: Hashable {
    /// The system is connecting.
    case connecting
    /// The ends agree on keys.
    case securing
    case open
    /// It is over, and its handler is yet to be notified, with the error if there was one.
    case closing(SocketError?)
    case closed
  }

  /// The writing side.
  enum Writing: Hashable {
    case open
    /// What is queued is still sent.
    case ending
    case ended
  }

  /// Who takes what is received.
  enum Taker: Hashable {
    case nobody
    /// The handler is called with the bytes.
    case handler
    /// The handler is notified once that there is something, and reads when it likes.
    case request
    /// A task waits.
    case waiter
  }

  private(set) var phase: Phase { didSet { notePhase() } }
  // What is looked at for every message: the phase has an error beside it.
  private(set) var isOpen = false
  private(set) var isOver = false
  private(set) var writing = Writing.open
  /// Why the writing side has ended before it was shut down.
  ///
  /// What was received before that is still delivered.
  private(set) var outputFailure: SocketError?
  private(set) var hasOutputFailed = false
  /// Tasks and handlers that wait to write have not been notified of the failure yet.
  private var owesFailure = false
  /// The peer writes no more.
  private(set) var hasEnded = false
  /// The system is not connecting: it has to be asked again.
  var awaitsRoom = false
  /// So many encrypted bytes wait to be sent that none are received, which might cause more.
  var isClogged = false
  /// Reading is paused.
  var isPaused = false
  var taker = Taker.nobody
  /// Somebody was notified that there is something to read, and has not read since.
  private(set) var hasToldReadable = false
  /// A writer was told to wait for room.
  private(set) var owesRoom = false

  init(isConnecting: Bool) {
    phase = isConnecting ? .connecting : .open
    isOpen = !isConnecting
  }

  private mutating func notePhase() {
    switch phase {
    case .connecting, .securing: (isOpen, isOver) = (false, false)
    case .open: (isOpen, isOver) = (true, false)
    case .closing, .closed: (isOpen, isOver) = (false, true)
    }
  }

  /// Whether bytes are to be received when there are any.
  var receives: Bool {
    guard isOpen, !hasEnded, !isClogged else { return false }
    switch taker {
    case .nobody: return false
    case .handler: return !isPaused
    case .request: return !isPaused && !hasToldReadable
    case .waiter: return true
    }
  }

  /// What is to be waited for; nil: nothing, not even errors.
  ///
  /// Where nobody takes what was received, an error has to wait: it would overtake the bytes that came before it.
  func interest(isQueueEmpty: Bool) -> RunLoop.DescriptorSource.Events? {
    switch phase {
    case .connecting: return awaitsRoom ? nil : .writable
    case .securing: return isQueueEmpty ? .readable : isClogged ? .writable : [.readable, .writable]
    case .closing, .closed: return nil
    case .open: break
    }
    var events: RunLoop.DescriptorSource.Events = []
    if receives { events.insert(.readable) }
    if !isQueueEmpty { events.insert(.writable) }
    return events.isEmpty && !hasEnded ? nil : events
  }

  mutating func connected() {
    guard phase == .connecting else { fatalError("a socket has connected that is \(phase)") }
    phase = .open
  }

  /// The connection is made, and is yet to be secured.
  mutating func secure() {
    switch phase {
    case .connecting, .open: phase = .securing
    case .securing, .closing, .closed: fatalError("a socket is secured that is \(phase)")
    }
    // What is there now is not for its readers.
    hasToldReadable = false
  }

  mutating func secured() {
    guard phase == .securing else { fatalError("a socket was secured that is \(phase)") }
    phase = .open
  }

  /// It is over, for the first reason that there is; true if this is it.
  mutating func close(_ error: SocketError?) -> Bool {
    guard !isOver else { return false }
    phase = .closing(error)
    return true
  }

  /// Records that the output has failed; returns whether this is the first reason.
  ///
  /// The socket is over when what was received has been delivered.
  mutating func failOutput(_ error: SocketError) -> Bool {
    guard !isOver, !hasOutputFailed else { return false }
    outputFailure = error
    hasOutputFailed = true
    owesFailure = true
    writing = .ended
    isClogged = false
    return true
  }

  /// Bytes have arrived: a writer that has stopped reading, to wait for room, is notified once more.
  mutating func received() { if hasOutputFailed { owesFailure = true } }

  /// Whether a writer has to be notified that nothing can be written.
  var owesWriter: Bool { owesFailure && isOpen }

  /// Takes the debt of notifying writers; true if one was told to wait for room.
  mutating func takeFailure() -> Bool {
    guard owesFailure, owesRoom else { return false }
    (owesFailure, owesRoom) = (false, false)
    return true
  }

  /// Nobody is notified any more; returns whether somebody still was to be.
  mutating func finish() -> Bool {
    guard phase != .closed else { return false }
    phase = .closed
    return true
  }

  mutating func toldReadable() { hasToldReadable = true }

  /// Somebody has read.
  mutating func hasRead() { hasToldReadable = false }

  /// The peer writes no more; true if both sides are over now.
  mutating func ended() -> Bool {
    hasEnded = true
    return writing == .ended
  }

  enum ShutDown {
    case nothing
    /// Shut down now.
    case now
    /// Shut down when the queue is empty.
    case later
  }

  /// Nothing more is to be written.
  mutating func endWriting(isQueueEmpty: Bool) -> ShutDown {
    guard writing == .open, !isOver else { return .nothing }
    writing = .ending
    return isQueueEmpty && phase == .open ? .now : .later
  }

  /// The writing side is over; true if both are now.
  mutating func writingEnded() -> Bool {
    writing = .ended
    return hasEnded
  }

  mutating func oweRoom() { owesRoom = true }

  /// Takes the debt of reporting that there is room, if there is now.
  mutating func takeRoom(queued: Int, lowWater: Int) -> Bool {
    guard owesRoom, queued <= lowWater, !hasOutputFailed else { return false }
    owesRoom = false
    return true
  }
}
