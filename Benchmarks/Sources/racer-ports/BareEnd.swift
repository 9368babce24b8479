// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One end of a bare socket pair that carries packets, with the minimal framing of a message.
struct BareEnd {
  enum Kind: UInt64 { case request = 1, message, confirmation, reply }

  static let headerSize = 32
  private static let magic: UInt64 = 0x504D_4C52

  let socket: Int32
  private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  private let header = UnsafeMutableRawBufferPointer.allocate(byteCount: BareEnd.headerSize, alignment: 16)

  init(_ socket: Int32) { self.socket = socket }

  func send(_ kind: Kind, _ token: Int, _ payload: [UInt8]) {
    header.storeBytes(of: Self.magic, as: UInt64.self)
    header.storeBytes(of: kind.rawValue, toByteOffset: 8, as: UInt64.self)
    header.storeBytes(of: token, toByteOffset: 16, as: Int.self)
    header.storeBytes(of: payload.count, toByteOffset: 24, as: Int.self)
    let isSent = payload.withUnsafeBytes { payload in
      withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { parts in
        parts[0] = iovec(iov_base: header.baseAddress, iov_len: header.count)
        parts[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: payload.baseAddress), iov_len: payload.count)
        var message = msghdr()
        message.msg_iov = parts.baseAddress
        message.msg_iovlen = payload.isEmpty ? 1 : 2
        return sendmsg(socket, &message, Int32(MSG_NOSIGNAL)) > 0
      }
    }
    guard isSent else { fatalError("a message was not sent") }
  }

  /// Receives one message, or returns nil if there is none.
  func receive(waits: Bool = true) -> (kind: Kind, token: Int, payload: [UInt8])? {
    let size = recv(socket, room.baseAddress, room.count, waits ? 0 : Int32(MSG_DONTWAIT))
    guard size > 0 else {
      // The other process has ended.
      guard size < 0, errno == EAGAIN else { exit(0) }
      return nil
    }
    let bytes = UnsafeRawBufferPointer(rebasing: room[..<size])
    guard size >= Self.headerSize, bytes.load(as: UInt64.self) == Self.magic,
      let kind = Kind(rawValue: bytes.load(fromByteOffset: 8, as: UInt64.self)),
      bytes.load(fromByteOffset: 24, as: Int.self) == size - Self.headerSize
    else { fatalError("not a message") }
    return (kind, bytes.load(fromByteOffset: 16, as: Int.self), Array(bytes.dropFirst(Self.headerSize)))
  }

  /// Waits in `poll`, as a server with other work would, and replies; returns after `last` replies.
  func serve(last: Int = .max) {
    var answers = 0
    while answers < last {
      var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, -1) > 0 else { continue }
      for _ in 0..<32 {
        guard let (kind, token, payload) = receive(waits: false) else { break }
        switch kind {
        case .request:
          send(.reply, token, payload)
          answers += 1
        case .confirmation: send(.confirmation, token, [])
        case .message, .reply: break
        }
      }
    }
  }

  func request(_ token: Int, _ payload: [UInt8]) {
    send(.request, token, payload)
    guard let reply = receive(), reply.token == token, reply.payload.count == payload.count else {
      fatalError("no reply")
    }
  }
}
