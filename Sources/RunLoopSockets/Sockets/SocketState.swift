// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The state machine of a socket, as a value: each event is a mutating function, and effects are implemented elsewhere.
struct SocketState: Hashable {
  enum Phase: Hashable {
    case connecting
    case securing
    case open
    /// The connection is over, with an error if there was one, and the handler has not been notified yet.
    case closing(SocketError?)
    case closed
  }

  enum Writing: Hashable {
    case open
    /// The writing side was shut down, but queued bytes are still being sent.
    case ending
    case ended
  }

  /// The recipient of received bytes.
  enum Taker: Hashable {
    case nobody
    /// The handler is called with the bytes.
    case handler
    /// The handler is notified once that bytes are available and reads them later.
    case request
    case waiter
  }

  private(set) var phase: Phase { didSet { notePhase() } }
  // Cached for each message, because comparing `phase` involves its error.
  private(set) var isOpen = false
  private(set) var isOver = false
  private(set) var writing = Writing.open
  /// The error that ended the writing side before it was shut down; bytes received earlier are still delivered.
  private(set) var outputFailure: SocketError?
  private(set) var hasOutputFailed = false
  /// Whether tasks and handlers waiting to write must still be notified of the failure.
  private var owesFailure = false
  private(set) var hasEnded = false
  /// The error that ended the connection, for tasks that use the closed socket; nil if it was invalidated.
  private(set) var endError: SocketError?
  /// Whether the system is not connecting, so that the attempt has to be repeated.
  var awaitsRoom = false
  /// Whether receiving is suspended because too many encrypted bytes are waiting to be sent, and receiving could add
  /// more.
  var isClogged = false
  var isPaused = false
  var taker = Taker.nobody
  /// Whether the reader was notified that there are bytes to read and has not read since.
  private(set) var hasToldReadable = false
  /// Whether a writer was asked to wait for room.
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

  /// Whether to receive bytes when they arrive.
  var receives: Bool {
    guard isOpen, !hasEnded, !isClogged else { return false }
    switch taker {
    case .nobody: return false
    case .handler: return !isPaused
    case .request: return !isPaused && !hasToldReadable
    case .waiter: return true
    }
  }

  /// Returns the events to watch for, or `nil` for none, not even errors.
  ///
  /// Without a reader, an error must wait, because it would overtake the bytes that arrived before it.
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

  /// The connection is established, and the TLS handshake begins.
  mutating func secure() {
    switch phase {
    case .connecting, .open: phase = .securing
    case .securing, .closing, .closed: fatalError("a socket is secured that is \(phase)")
    }
    // Bytes that have arrived belong to the handshake, not to the reader.
    hasToldReadable = false
  }

  mutating func secured() {
    guard phase == .securing else { fatalError("a socket was secured that is \(phase)") }
    phase = .open
  }

  /// Ends the connection, or returns false if it has already ended for another reason.
  mutating func close(_ error: SocketError?) -> Bool {
    guard !isOver else { return false }
    phase = .closing(error)
    return true
  }

  /// Records that the output has failed.
  ///
  /// Returns whether this is the first failure. The socket ends when the bytes that were received have been delivered.
  mutating func failOutput(_ error: SocketError) -> Bool {
    guard !isOver, !hasOutputFailed else { return false }
    outputFailure = error
    hasOutputFailed = true
    owesFailure = true
    writing = .ended
    isClogged = false
    return true
  }

  /// Records that bytes have arrived; a writer that stopped reading to wait for room is then notified once more.
  mutating func received() { if hasOutputFailed { owesFailure = true } }

  /// Whether a writer must be notified that nothing can be written.
  var owesWriter: Bool { owesFailure && isOpen }

  /// Clears the pending notification of a failure, and returns whether there was one and a writer was asked to wait.
  mutating func takeFailure() -> Bool {
    guard owesFailure, owesRoom else { return false }
    (owesFailure, owesRoom) = (false, false)
    return true
  }

  /// Ends all notifications, and returns whether the end had not been reported yet.
  mutating func finish(isInvalidated: Bool) -> Bool {
    guard phase != .closed else { return false }
    if !isInvalidated, case .closing(let error) = phase { endError = error }
    phase = .closed
    return true
  }

  mutating func toldReadable() { hasToldReadable = true }

  mutating func hasRead() { hasToldReadable = false }

  /// Records that the peer has stopped writing, and returns whether both sides have now ended.
  mutating func ended() -> Bool {
    hasEnded = true
    return writing == .ended
  }

  enum ShutDown {
    case nothing
    case now
    /// Shut down when the queue is empty.
    case later
  }

  /// Records that nothing more will be written, and returns when to shut the writing side down.
  mutating func endWriting(isQueueEmpty: Bool) -> ShutDown {
    guard writing == .open, !isOver else { return .nothing }
    writing = .ending
    return isQueueEmpty && phase == .open ? .now : .later
  }

  /// Records that the writing side was shut down, and returns whether both sides have now ended.
  mutating func writingEnded() -> Bool {
    writing = .ended
    return hasEnded
  }

  mutating func oweRoom() { owesRoom = true }

  /// If there is room now, clears the pending notification of it and returns true.
  mutating func takeRoom(queued: Int, lowWater: Int) -> Bool {
    guard owesRoom, queued <= lowWater, !hasOutputFailed else { return false }
    owesRoom = false
    return true
  }
}
