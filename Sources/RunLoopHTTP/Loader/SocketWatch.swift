// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC

/// A socket of the library's and the source that watches it.
///
/// The library takes a socket away and adds it again for each request of a kept connection. The source stays until the
/// socket is closed, and goes on waiting for bytes, as the next request mostly wants them at once: it is paused when
/// some come that nobody wants.
final class SocketWatch {
  // What changes is used by the loop's thread alone, and none of it is used while something else is called.

  let source: RunLoop.DescriptorSource
  /// The number of the attempt that has opened it; zero for none.
  @exclusivity(unchecked) var opener: UInt = 0
  /// What those have in common who may use it; nil for all whom libcurl lets.
  @exclusivity(unchecked) var sharingKey: String?
  /// Whether the loop has the source.
  @exclusivity(unchecked) var isAdded = false
  /// Whether the library wants to know of it now.
  @exclusivity(unchecked) var isWanted = false
  /// Whether the library says when it closes it, which it does not of a socket that it has made by itself.
  let isOfConnection: Bool
  /// The socket's own address and the peer's, once they were asked for.
  @exclusivity(unchecked) var ends: Ends?
  /// Whether an answer of HTTP/1 has come on it: between its answers nothing may come.
  @exclusivity(unchecked) var speaksHTTP1 = false
  @exclusivity(unchecked) var speaksHTTP2 = false
  /// Whether the server had ended the connection when the library closed it; nil while it is open.
  @exclusivity(unchecked) var hadPeerEnded: Bool?
  /// Whether its first answer may be one of HTTP/2.
  @exclusivity(unchecked) var mayBeHTTP2 = false
  /// Whether it was ended as too much came that nobody has asked for; nil for one that nobody looks at.
  @exclusivity(unchecked) var flood: FloodGuard.Connection?
  /// How many times there was something to read since the library has reported anything, and how many bytes had
  /// arrived when they became too many to be passed over.
  @exclusivity(unchecked) private var fruitless: (turns: Int, bytes: UInt64?) = (0, nil)
  /// Whose bytes come on it, where that is one attempt alone: libcurl reports lines, and a line may come byte by byte.
  ///
  /// An attempt takes itself away when it ends. It is no weak reference, for which every other reference to the attempt
  /// would cost more.
  @exclusivity(unchecked) var attempt: Attempt?

  /// What the library says of a connection in a call.
  struct Said {
    let own: UnsafePointer<CChar>?
    let ownPort: Int32
    let peer: UnsafePointer<CChar>?
    let peerPort: Int32
  }

  /// What it said of this one last, with what it means.
  @exclusivity(unchecked) private var said: (own: [CChar], ownPort: Int32, peer: [CChar], peerPort: Int32)?

  /// Whether it says of this one what it said before.
  func isSaid(_ now: Said) -> Bool {
    guard let said, said.ownPort == now.ownPort, said.peerPort == now.peerPort, let own = now.own, let peer = now.peer
    else { return false }
    return strcmp(said.own, own) == 0 && strcmp(said.peer, peer) == 0
  }

  func note(_ now: Said) {
    guard let own = now.own, let peer = now.peer else { return }
    func copy(_ text: UnsafePointer<CChar>) -> [CChar] {
      Array(UnsafeBufferPointer(start: text, count: strlen(text) + 1))
    }
    said = (copy(own), now.ownPort, copy(peer), now.peerPort)
  }

  /// What tells a connection from all others: two may well have the same ports.
  struct Ends: Hashable {
    let own: End
    let peer: End
  }

  /// An address and a port.
  struct End: Hashable {
    let high: UInt64
    let low: UInt64
    let port: UInt16
  }

  init(_ source: RunLoop.DescriptorSource, isOfConnection: Bool) {
    self.source = source
    self.isOfConnection = isOfConnection
  }

  /// The library reports something that has arrived on it, or asks for what is sent.
  func noteProgress() {
    flood?.noteProgress()
    if fruitless.turns > 0 { fruitless = (0, nil) }
  }

  /// How many times there may be something to read of which nothing is reported, before the bytes are counted.
  static let mostTurns = 16

  /// Notes that there was something to read; true if too much came of which nothing was reported.
  func isFlooded() -> Bool {
    fruitless.turns += 1
    guard fruitless.turns % Self.mostTurns == 0 else { return false }
    if let bytes = fruitless.bytes { return FloodGuard.isFlooded(source.descriptor, since: bytes) }
    fruitless.bytes = FloodGuard.received(source.descriptor)
    return false
  }

  /// Whether it is a kept connection that cannot be used: it has ended, or, for HTTP/1, bytes came after the end of the
  /// last answer, which would be the next answer.
  ///
  /// The library asks the socket too. It takes one that was reset for a good one, as it is told of that only once, and
  /// one of HTTP/2 that has ended without a word.
  var isSpoiled: Bool {
    guard speaksHTTP1 || speaksHTTP2 else { return false }
    return switch peek() {
    case .bytes: speaksHTTP1
    case .end, .failure: true
    case .nothing: false
    }
  }

  /// Whether the server has ended the connection and everything that it sent was read; valid after closing, too.
  var peerHasEnded: Bool { hadPeerEnded ?? peek().isEnd }

  /// Records who ended an HTTP/2 connection, which the library does not report; called before the socket is closed.
  func noteClosing() {
    noteEndBeforeRequest()
    hadPeerEnded = (speaksHTTP2 || mayBeHTTP2) && peek().isEnd
  }

  /// How many bytes the peer had acknowledged before the request; nil if that is not needed.
  @exclusivity(unchecked) private var acknowledged: UInt64?
  /// Whether the peer has ended the connection before any byte of the request reached it.
  @exclusivity(unchecked) private(set) var endedBeforeRequest = false

  /// A request is about to be sent that must not be sent again once it was received.
  func noteRequest() { acknowledged = TCPInfo(source.descriptor)?.acknowledged }

  /// Notes whether the peer ended the connection before it had received anything of the request.
  ///
  /// With its end the peer acknowledges what has arrived by then. If that is nothing new, the server had not received
  /// the request, and it cannot respond later. A reset acknowledges nothing: the server may have read the request. If
  /// the peer has ended the connection and then reset it, as it was closed already, the library finds no error when it
  /// reads, and EPIPE when it writes; after a mere reset it finds ECONNRESET, unless it encrypts.
  func noteEndBeforeRequest() {
    // Where a system does not count them, there are none at all.
    guard hadPeerEnded == nil, let acknowledged, acknowledged > 0, let attempt, let now = TCPInfo(source.descriptor),
      now.acknowledged == acknowledged
    else { return }
    endedBeforeRequest =
      now.state == TCPInfo.closeWait || now.state == TCPInfo.closed && attempt.hasNoResetError && peek() == .end
  }

  private enum Peek {
    case nothing
    case bytes
    case end
    case failure

    var isEnd: Bool { self == .end || self == .failure }
  }

  private func peek() -> Peek {
    var byte: UInt8 = 0
    let count = recv(source.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    if count >= 0 { return count > 0 ? .bytes : .end }
    return errno == EAGAIN || errno == EINTR ? .nothing : .failure
  }

  /// The library does not want to know of it for now.
  func rest() {
    isWanted = false
    if !isOfConnection || source.events != .readable { source.pause() }
  }
}

extension SocketWatch.Ends {
  /// What the library says of a connection; nil for one of no family that has ports.
  init?(own: UnsafePointer<CChar>?, _ ownPort: Int32, peer: UnsafePointer<CChar>?, _ peerPort: Int32) {
    guard let own = SocketWatch.End(own, ownPort), let peer = SocketWatch.End(peer, peerPort) else { return nil }
    self.init(own: own, peer: peer)
  }

  /// What the system says of a socket; nil for one that is not connected, or of no family that has ports.
  init?(of descriptor: Int32) {
    guard let own = SocketWatch.End({ getsockname(descriptor, $0, $1) }),
      let peer = SocketWatch.End({ getpeername(descriptor, $0, $1) })
    else { return nil }
    self.init(own: own, peer: peer)
  }
}

extension SocketWatch.End {
  fileprivate init(_ address: in_addr, _ port: UInt16) {
    self.init(high: 0, low: UInt64(UInt32(bigEndian: address.s_addr)), port: port)
  }

  fileprivate init(_ address: in6_addr, _ port: UInt16) {
    let (high, low) = withUnsafeBytes(of: address) {
      ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low), port: port)
  }

  /// Reads an address as the library writes it.
  fileprivate init?(_ text: UnsafePointer<CChar>?, _ port: Int32) {
    guard let text, let port = UInt16(exactly: port) else { return nil }
    var (four, six) = (in_addr(), in6_addr())
    if inet_pton(AF_INET, text, &four) == 1 {
      self.init(four, port)
    } else if inet_pton(AF_INET6, text, &six) == 1 {
      self.init(six, port)
    } else {
      return nil
    }
  }

  /// Reads an address as the system says it.
  fileprivate init?(_ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let found: SocketWatch.End? = withUnsafeMutablePointer(to: &address) { storage in
      let isThere = storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask($0, &length) == 0 }
      guard isThere else { return nil }
      switch Int32(storage.pointee.ss_family) {
      case AF_INET:
        return storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          SocketWatch.End($0.pointee.sin_addr, UInt16(bigEndian: $0.pointee.sin_port))
        }
      case AF_INET6:
        return storage.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          SocketWatch.End($0.pointee.sin6_addr, UInt16(bigEndian: $0.pointee.sin6_port))
        }
      default: return nil
      }
    }
    guard let found else { return nil }
    self = found
  }
}
