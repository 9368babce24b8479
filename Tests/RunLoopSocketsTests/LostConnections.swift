// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

/// What is lost, and how.
struct Loss: Hashable, Sendable, CustomTestStringConvertible {
  /// What fails.
  enum Failure: CaseIterable { case write, shutDown, record, ticket }
  /// How the peer has ended.
  enum End: CaseIterable { case fin, rst }
  /// Whether the loop looks while it happens, or only afterwards.
  enum Moment: CaseIterable { case busy, idle }
  /// Who receives.
  enum Receiver: CaseIterable { case handler, readiness, tasks, streams }

  let failure: Failure
  let end: End
  let moment: Moment
  let receiver: Receiver

  var isSecured: Bool { isServer || failure == .record }
  /// Tickets are a server's.
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

/// Runs `body` on a new thread with its loop, and leaves this thread to the tasks that it waits for.
func onOtherLoop(_ body: @escaping @Sendable (RunLoop, Log) throws -> Void) async -> String {
  await elsewhere { onSocketLoop(body) }
}

/// Both ends of a connection of TCP, whose numbers the test owns; the near one has room for what the tests send.
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

/// The number of a connection that waits at a socket in no loop.
func acceptedEnd(of listener: ListeningSocket) throws -> Int32 {
  let number = try #require(listener.withDescriptor { accept($0, nil, nil) })
  try #require(number >= 0)
  _ = fcntl(number, F_SETFD, FD_CLOEXEC)
  return number
}

/// Waits until the kernel has been told of the peer's end.
func awaitEnd(of descriptor: Int32, _ end: Loss.End) {
  // POLLRDHUP, which the C library declares for programs in C alone; a reset is always reported.
  var entry = pollfd(fd: descriptor, events: end == .fin ? 0x2000 : 0, revents: 0)
  #expect(poll(&entry, 1, 60_000) == 1)
}

/// The far end of a connection, without a loop: what it is asked to do is done when that returns.
///
/// Its end does not depend on other tests' programs, which may have a copy of the descriptor for a moment.
final class Peer: @unchecked Sendable {
  // Sendable: one thread uses it at a time.
  private let descriptor: Int32
  private let session: TLSSession?

  init(_ descriptor: Int32, _ session: TLSSession?) {
    self.descriptor = descriptor
    self.session = session
  }

  var isShakingHands: Bool { session?.state.isHandshaking ?? false }

  /// Makes the connection one that is open at the other end; a client's last message waits for what is behind it.
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

  /// Takes what has arrived; false if nothing has.
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

  /// Sends what is encrypted.
  func flush() {
    guard let session, session.hasOutput else { return }
    let bytes = session.withOutput { Array($0) }
    session.sent(bytes.count)
    put(bytes)
  }

  /// Sends bytes, waits until the other end's kernel has them, and ends.
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
    // What was not acknowledged would be dropped by a reset.
    var unsent: Int32 = 1
    while unsent > 0, ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0 { sched_yield() }
    switch end {
    case .fin:
      // Else it would be a reset.
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

/// The near end of a connection, that receives in one of the ways.
final class Reader: Sendable {
  private let bytes = Box<[UInt8]>([])
  private let log = Log()
  private let loss: Loss
  private let reacts: Bool
  private let loop: RunLoop
  private let socket = Box<Socket?>(nil)
  private let streams = Box<(input: InputByteStream, output: OutputByteStream)?>(nil)

  /// Makes an end.
  ///
  /// - Parameter reacts: Whether it writes or shuts down when it has received something.
  init(_ loss: Loss, _ descriptor: Int32, _ context: TLSContext?, reacts: Bool, on loop: RunLoop) throws {
    self.loss = loss
    self.reacts = reacts
    self.loop = loop
    let name = context?.isServer == false ? "localhost" : nil
    // The loop goes on until a task has been told, when the connection is gone.
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

  /// Begins to receive, where that is not done by a handler.
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

  /// Writes a little; false if it has failed.
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
