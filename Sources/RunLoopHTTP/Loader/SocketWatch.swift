// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC

/// A libcurl socket and the source that watches it.
///
/// libcurl removes a socket and adds it again for each request on a reused connection. The source stays in the loop
/// until the socket is closed, and keeps watching for data, which the next request usually wants immediately. It is
/// paused if data arrives that no request wants.
final class SocketWatch {
  // Used only by the loop's thread. No variable is in use during a call to other code.

  let source: RunLoop.DescriptorSource
  /// The number of the attempt that opened the socket; zero for none.
  @exclusivity(unchecked) var opener: UInt = 0
  /// The key that requests must have to use this connection; nil if libcurl decides alone.
  @exclusivity(unchecked) var sharingKey: String?
  @exclusivity(unchecked) var isAdded = false
  /// Whether libcurl is currently interested in the socket.
  @exclusivity(unchecked) var isWanted = false
  /// Whether libcurl reports when it closes the socket, which it does not for sockets that it created itself.
  let isOfConnection: Bool
  /// The addresses of both ends, once they have been requested.
  @exclusivity(unchecked) var ends: Ends?
  /// Whether an HTTP/1 response has arrived on the connection, so that nothing may arrive between responses.
  @exclusivity(unchecked) var speaksHTTP1 = false
  @exclusivity(unchecked) var speaksHTTP2 = false
  /// Whether the server had ended the connection when libcurl closed it; nil while it is open.
  @exclusivity(unchecked) var hadPeerEnded: Bool?
  /// Whether the first response may be HTTP/2.
  @exclusivity(unchecked) var mayBeHTTP2 = false
  /// The guard's record of the connection; nil if it is not monitored.
  @exclusivity(unchecked) var flood: FloodGuard.Connection?
  /// The number of read events since libcurl last reported anything, and the number of received bytes at the time that
  /// number became suspicious.
  @exclusivity(unchecked) private var fruitless: (turns: Int, bytes: UInt64?) = (0, nil)
  /// The attempt that receives the data, if it is a single one: libcurl reports whole lines, which may arrive in
  /// single bytes.
  ///
  /// An attempt clears it when it ends. A weak reference would make every other reference to the attempt more
  /// expensive.
  @exclusivity(unchecked) var attempt: Attempt?

  /// The addresses of a connection as reported by a libcurl callback.
  struct Said {
    let own: UnsafePointer<CChar>?
    let ownPort: Int32
    let peer: UnsafePointer<CChar>?
    let peerPort: Int32
  }

  /// The addresses that libcurl last reported for this connection.
  @exclusivity(unchecked) private var said: (own: [CChar], ownPort: Int32, peer: [CChar], peerPort: Int32)?

  /// Whether libcurl reports the same addresses for this connection as before.
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

  /// Both ends of a connection, which identify it; the ports alone are not unique.
  struct Ends: Hashable {
    let own: End
    let peer: End
  }

  struct End: Hashable {
    let high: UInt64
    let low: UInt64
    let port: UInt16
  }

  init(_ source: RunLoop.DescriptorSource, isOfConnection: Bool) {
    self.source = source
    self.isOfConnection = isOfConnection
  }

  /// Called when libcurl reports that something has arrived on the socket, or asks for data to send.
  func noteProgress() {
    flood?.noteProgress()
    if fruitless.turns > 0 { fruitless = (0, nil) }
  }

  /// The number of read events without a report after which the bytes are counted.
  static let mostTurns = 16

  /// Records a read event, and returns true if too much data has arrived without a report.
  func isFlooded() -> Bool {
    fruitless.turns += 1
    guard fruitless.turns % Self.mostTurns == 0 else { return false }
    if let bytes = fruitless.bytes { return FloodGuard.isFlooded(source.descriptor, since: bytes) }
    fruitless.bytes = FloodGuard.received(source.descriptor)
    return false
  }

  /// Whether a reused connection is unusable, because it has ended or, for HTTP/1, data arrived after the end of the
  /// last response, which would be taken for the next response.
  ///
  /// libcurl also checks the socket. It takes a connection that was reset for a good one, because the error is
  /// reported only once, as well as an HTTP/2 connection that has ended without a GOAWAY.
  var isSpoiled: Bool {
    guard speaksHTTP1 || speaksHTTP2 else { return false }
    return switch peek() {
    case .bytes: speaksHTTP1
    case .end, .failure: true
    case .nothing: false
    }
  }

  /// Whether the server has ended the connection and all its data was read; also valid after the socket is closed.
  var peerHasEnded: Bool { hadPeerEnded ?? peek().isEnd }

  /// Records which side ended an HTTP/2 connection, which libcurl does not report, before the socket is closed.
  func noteClosing() {
    noteEndBeforeRequest()
    hadPeerEnded = (speaksHTTP2 || mayBeHTTP2) && peek().isEnd
  }

  /// The number of bytes the peer had acknowledged before the request; nil if that is not needed.
  @exclusivity(unchecked) private var acknowledged: UInt64?
  /// Whether the peer ended the connection before any byte of the request reached it.
  @exclusivity(unchecked) private(set) var endedBeforeRequest = false

  /// Called before a request that must not be sent again once the server has received it.
  func noteRequest() { acknowledged = TCPInfo(source.descriptor)?.acknowledged }

  /// Records whether the peer ended the connection before it had received anything of the request.
  ///
  /// When the peer ends the connection, it acknowledges what has arrived by then. If that is nothing new, the server
  /// had not received the request and cannot respond later. A reset acknowledges nothing, so the server may have read
  /// the request. If the peer ended the connection and then reset it because it was already closed, libcurl finds no
  /// error when it reads and EPIPE when it writes. After a mere reset it finds ECONNRESET, unless it uses TLS.
  func noteEndBeforeRequest() {
    // Systems that do not count acknowledged bytes report zero.
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

  /// The maximum number of unsent bytes that the kernel may queue for a connection.
  ///
  /// By default, a socket accepts megabytes at once, and more when a third of them has been sent. With a slow server
  /// that could take longer than the idle timeout, and the reported progress would be far ahead of the actual one.
  private static let mostQueued: Int32 = 128 * 1024

  /// Sets whether the kernel holds back written bytes and queues as many as it can.
  func setHoldsBack(_ holdsBack: Bool) {
    Self.set(source.descriptor, TCP_CORK, holdsBack ? 1 : 0)
    Self.limitQueue(of: source.descriptor, to: holdsBack ? .max : Self.mostQueued)
  }

  static func limitQueue(of descriptor: Int32, to most: Int32 = mostQueued) {
    set(descriptor, TCP_NOTSENT_LOWAT, most)
  }

  // If an option is not supported, or the socket has another family, the kernel's default applies.
  private static func set(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    _ = setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Called when libcurl is not interested in the socket for now.
  func rest() {
    isWanted = false
    if !isOfConnection || source.events != .readable { source.pause() }
  }
}

extension SocketWatch.Ends {
  /// Creates the ends from libcurl's report; nil if the socket's family has no ports.
  init?(own: UnsafePointer<CChar>?, _ ownPort: Int32, peer: UnsafePointer<CChar>?, _ peerPort: Int32) {
    guard let own = SocketWatch.End(own, ownPort), let peer = SocketWatch.End(peer, peerPort) else { return nil }
    self.init(own: own, peer: peer)
  }

  /// Creates the ends from the system's records; nil if the socket is not connected, or its family has no ports.
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

  /// Parses an address in libcurl's format.
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

  /// Reads an address from a system call.
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
