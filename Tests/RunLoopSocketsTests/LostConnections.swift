// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

/// A way in which a connection is lost.
struct Loss: Hashable, Sendable, CustomTestStringConvertible {
  /// The operation that fails.
  enum Failure: CaseIterable { case write, shutDown, record, ticket }
  /// How the peer ends the connection.
  enum End: CaseIterable { case fin, rst }
  /// Whether the loop polls while it happens, or only afterwards.
  enum Moment: CaseIterable { case busy, idle }
  /// The API that receives.
  enum Receiver: CaseIterable { case handler, readiness, tasks, streams }

  let failure: Failure
  let end: End
  let moment: Moment
  let receiver: Receiver

  var isSecured: Bool { isServer || failure == .record }
  /// Whether the near end is a server, which sends tickets.
  var isServer: Bool { failure == .ticket }

  static var all: [Loss] {
    var all: [Loss] = []
    for failure in Failure.allCases where TLSFiles.isAvailable || ![.record, .ticket].contains(failure) {
      for end in End.allCases {
        for moment in Moment.allCases {
          for receiver in Receiver.allCases {
            all.append(Loss(failure: failure, end: end, moment: moment, receiver: receiver))
          }
        }
      }
    }
    return all
  }

  var testDescription: String { "\(failure) \(end) \(moment) \(receiver)" }
}

/// Runs `body` with the loop of a new thread, and leaves this thread to the tasks that it waits for.
func onOtherLoop(_ body: @escaping @Sendable (RunLoop, Log) throws -> Void) async -> String {
  await elsewhere { onSocketLoop(body) }
}

/// Creates both ends of a TCP connection, owned by the test.
///
/// The near end has room for everything the tests send.
func connectedPair() throws -> (near: Int32, far: Int32) {
  let listener = try ListeningSocket(at: .loopback(port: 0))
  let near = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  var room: Int32 = 200_000
  try #require(setsockopt(near, SOL_SOCKET, SO_RCVBUF, &room, 4) == 0)
  let isConnected = listener.address.withBytes { bytes, length in
    connect(near, bytes?.assumingMemoryBound(to: sockaddr.self), length) == 0
  }
  try #require(isConnected)
  return (near, try acceptedEnd(of: listener))
}

/// Accepts a connection that waits at a socket in no loop, and returns its descriptor.
func acceptedEnd(of listener: ListeningSocket) throws -> Int32 {
  let number = try #require(listener.withDescriptor { accept($0, nil, nil) })
  try #require(number >= 0)
  _ = fcntl(number, F_SETFD, FD_CLOEXEC)
  return number
}

/// Waits until the kernel has received the peer's end.
func awaitEnd(of descriptor: Int32, _ end: Loss.End) {
  // POLLRDHUP, which the C library declares only for GNU C. A reset is always reported.
  var entry = pollfd(fd: descriptor, events: end == .fin ? 0x2000 : 0, revents: 0)
  #expect(poll(&entry, 1, 60_000) == 1)
}

/// The far end of a connection, without a loop.
///
/// Its operations are complete when they return.
///
/// Its end does not depend on the processes of other tests, which may briefly hold a copy of the descriptor.
final class Peer: @unchecked Sendable {
  // Sendable: one thread uses it at a time.
  private let descriptor: Int32
  private let session: TLSSession?

  init(_ descriptor: Int32, _ session: TLSSession?) {
    self.descriptor = descriptor
    self.session = session
  }

  var isShakingHands: Bool { session?.state.isHandshaking ?? false }

  /// Shakes hands, so that the other end is open.
  ///
  /// A client's last message is sent with the bytes that follow.
  func shakeHands(with reader: Reader, on loop: RunLoop) {
    let isClient = session?.context.isServer == false
    session?.start()
    if isClient { flush() }
    while isShakingHands || (!isClient && !reader.isOpen) {
      loop.run(mode: .default, for: .zero)
      receive()
      if !isClient { flush() }
    }
  }

  /// Receives what has arrived, or returns false.
  @discardableResult
  func receive() -> Bool {
    var bytes = [UInt8](repeating: 0, count: 64 * 1024)
    let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
    guard count > 0 else { return false }
    bytes.withUnsafeBytes {
      let room = UnsafeMutableRawBufferPointer(start: nil, count: 0)
      _ = session?.receive(UnsafeRawBufferPointer(rebasing: $0[..<count]), into: room)
    }
    return true
  }

  private func put(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Sends the session's encrypted output.
  func flush() {
    guard let session, session.hasOutput else { return }
    let bytes = session.withOutput { Array($0) }
    session.sent(bytes.count)
    put(bytes)
  }

  /// Sends bytes, waits until the other end's kernel has received them, and ends the connection.
  func finish(_ bytes: [UInt8], _ end: Loss.End) {
    if let session {
      var rest = bytes[...]
      while !rest.isEmpty, session.state.writes {
        rest = rest.dropFirst(rest.withUnsafeBytes { session.write($0) })
        flush()
      }
      if end == .fin { session.endWriting() }
      flush()
    } else {
      put(bytes)
    }
    // A reset would drop bytes that were not acknowledged.
    var unsent: Int32 = 1
    while unsent > 0, ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0 { sched_yield() }
    switch end {
    case .fin:
      // With unread bytes the close would send a reset.
      while receive() {}
      shutdown(descriptor, Int32(SHUT_RDWR))
    case .rst:
      var nobody = sockaddr()
      nobody.sa_family = sa_family_t(AF_UNSPEC)
      #expect(connect(descriptor, &nobody, socklen_t(MemoryLayout<sockaddr>.size)) == 0)
    }
  }

  func release() { close(descriptor) }
}

/// The near end of a connection, which receives through one of the APIs.
final class Reader: Sendable {
  private let bytes = Box<[UInt8]>([])
  private let log = Log()
  private let loss: Loss
  private let reacts: Bool
  private let loop: RunLoop
  let socket = Box<Socket?>(nil)
  private let streams = Box<(input: InputByteStream, output: OutputByteStream)?>(nil)

  /// Creates the near end.
  ///
  /// - Parameter reacts: Whether it writes or shuts down after it has received something.
  init(_ loss: Loss, _ descriptor: Int32, _ context: TLSContext?, reacts: Bool, on loop: RunLoop) throws {
    self.loss = loss
    self.reacts = reacts
    self.loop = loop
    let name = context?.isServer == false ? "localhost" : nil
    // Keeps the loop running until a task has its result, as the connection is gone by then.
    loop.add(RunLoop.Source {}, forMode: .default)
    guard loss.receiver != .streams else {
      let pair =
        if let context {
          try ByteStream.pair(takingOver: descriptor, tls: context, serverName: name)
        } else {
          try ByteStream.pair(takingOver: descriptor)
        }
      streams.value = pair
      pair.input.handler = { [self] _, event in respond(to: event) }
      for stream in [pair.input, pair.output] as [ByteStream] {
        try stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      return
    }
    var options = Socket.Options()
    options.tls = context
    options.serverName = name
    options.delivery = loss.receiver == .readiness ? .readiness : .bytes
    let socket = try Socket(takingOver: descriptor, options: options)
    if loss.receiver != .tasks { socket.handler = { [self] socket, event in respond(to: event, of: socket) } }
    self.socket.value = socket
    try loop.add(socket, forMode: .default)
  }

  var isOpen: Bool { socket.value?.isConnected ?? (streams.value?.output.status == .open) }
  var received: [UInt8] { bytes.value }
  /// Whether the end or an error was reported first.
  var outcome: String { log.text }

  /// Starts receiving if that is not done by a handler.
  func start() {
    guard loss.receiver == .tasks, let socket = socket.value else { return }
    Task {
      do {
        while let more = try await socket.receive(atMost: 10_000) { took(more[...]) }
        log.write("ended")
      } catch {
        log.write("lost")
      }
      loop.perform { RunLoop.current.stop() }
    }
  }

  private func took(_ more: ArraySlice<UInt8>) {
    bytes.update { $0 += more }
    guard reacts else { return }
    if loss.failure == .shutDown { shutDown() } else { _ = write() }
  }

  private func take(_ read: (UnsafeMutableRawBufferPointer) throws -> Int?) -> Int? {
    var room = [UInt8](repeating: 0, count: 10_000)
    let count = room.withUnsafeMutableBytes { (try? read($0)) ?? nil }
    if let count, count > 0 { took(room[..<count]) }
    return count
  }

  private func respond(to event: Socket.Event, of socket: Socket) {
    switch event {
    case .received(let more): took(more.withUnsafeBytes { Array($0)[...] })
    case .readable:
      guard take({ try socket.read(into: $0) }) == 0 else { return }
      log.write("ended")
      socket.shutDown(.write)
    case .ended:
      log.write("ended")
      socket.shutDown(.write)
    case .closed(let error):
      if log.text.isEmpty { log.write(error == nil ? "closed" : "lost") }
      loop.stop()
    case .connected, .writable: break
    }
  }

  private func respond(to event: ByteStream.Event) {
    switch event {
    case .hasBytesAvailable: _ = take { try streams.value?.input.read(into: $0) }
    case .endEncountered: log.write("ended")
    case .errorOccurred: log.write("lost")
    case .openCompleted, .canAcceptBytes: return
    }
    if !log.text.isEmpty { loop.stop() }
  }

  /// Writes a little; returns false if it has failed.
  func write() -> Bool {
    do {
      if let socket = socket.value { return try socket.write("ack") }
      return try streams.value?.output.write(Array("ack".utf8)) != nil
    } catch {
      return false
    }
  }

  func shutDown() {
    socket.value?.shutDown(.write)
    streams.value?.output.close()
  }

  func release() {
    socket.value?.invalidate()
    streams.value?.input.close()
    streams.value?.output.close()
    socket.value = nil
    streams.value = nil
  }
}
