import Glibc
import RunLoopCore
import RunLoopPorts

/// Answers on a message port until it is killed.
func servePort(directory: String) {
  do {
    let port = try MessagePort.Local(name: "race", directory: .init(path: directory)) { request in
      request.expectsReply ? MessagePort.Reply(request.bytes) : nil
    }
    try RunLoop.current.add(port, forMode: .default)
  } catch { fatalError("\(error)") }
  RunLoop.current.run()
}

/// The least that two processes need to tell messages apart: what it is, its number, its length.
struct BareFrame {
  static let size = 32
  var kind: UInt64
  var token: UInt64
  var length: Int

  func write(into bytes: UnsafeMutableRawBufferPointer) {
    bytes.storeBytes(of: 0x504D_4C52, as: UInt64.self)
    bytes.storeBytes(of: kind, toByteOffset: 8, as: UInt64.self)
    bytes.storeBytes(of: token, toByteOffset: 16, as: UInt64.self)
    bytes.storeBytes(of: length, toByteOffset: 24, as: Int.self)
  }

  init(kind: UInt64, token: UInt64, length: Int) {
    self.kind = kind
    self.token = token
    self.length = length
  }

  init?(reading bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.size, bytes.load(as: UInt64.self) == 0x504D_4C52 else { return nil }
    kind = bytes.load(fromByteOffset: 8, as: UInt64.self)
    token = bytes.load(fromByteOffset: 16, as: UInt64.self)
    length = bytes.load(fromByteOffset: 24, as: Int.self)
    guard bytes.count == Self.size + length else { return nil }
  }
}

/// One end of a bare socket pair.
struct BareEnd {
  let socket: Int32
  private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  private let header = UnsafeMutableRawBufferPointer.allocate(byteCount: BareFrame.size, alignment: 16)

  init(_ socket: Int32) { self.socket = socket }

  /// False: there is no room now.
  func send(_ frame: BareFrame, _ payload: [UInt8], flags: Int32 = Int32(MSG_NOSIGNAL)) -> Bool {
    frame.write(into: header)
    return payload.withUnsafeBytes { payload in
      withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { parts in
        parts[0] = iovec(iov_base: header.baseAddress, iov_len: header.count)
        parts[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: payload.baseAddress), iov_len: payload.count)
        var message = msghdr()
        message.msg_iov = parts.baseAddress
        message.msg_iovlen = payload.isEmpty ? 1 : 2
        return sendmsg(socket, &message, flags) > 0
      }
    }
  }

  /// Receives one message; nil: none is there.
  func receive(flags: Int32 = 0) -> (BareFrame, [UInt8])? {
    let size = recv(socket, room.baseAddress, room.count, flags)
    guard size > 0 else {
      guard size < 0, errno == EAGAIN else { exit(0) }
      return nil
    }
    let bytes = UnsafeRawBufferPointer(rebasing: room[..<size])
    guard let frame = BareFrame(reading: bytes) else { fatalError("not a message") }
    return (frame, Array(bytes.dropFirst(BareFrame.size)))
  }
}

/// Answers requests (kind 1), takes messages (kind 2), and confirms them when asked to (kind 3).
func serveBare(_ socket: Int32, polls: Bool) {
  let end = BareEnd(socket)
  func serve(_ frame: BareFrame, _ payload: [UInt8]) {
    guard frame.kind != 2 else { return }
    let isSent = end.send(
      .init(kind: 4, token: frame.token, length: frame.kind == 1 ? payload.count : 0), frame.kind == 1 ? payload : [])
    guard isSent else { fatalError("no reply was sent") }
  }
  while true {
    guard polls else {
      if let (frame, payload) = end.receive() { serve(frame, payload) }
      continue
    }
    var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, -1) > 0 else { continue }
    for _ in 0..<32 {
      guard let (frame, payload) = end.receive(flags: Int32(MSG_DONTWAIT)) else { break }
      serve(frame, payload)
    }
  }
}
