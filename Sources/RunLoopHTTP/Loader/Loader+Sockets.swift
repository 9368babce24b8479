// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopThreads

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
  @exclusivity(unchecked) fileprivate var hadPeerEnded: Bool?
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
  /// With its end the peer acknowledges what has arrived by then: if that is nothing new, no program had it when the
  /// peer ended, and none can respond to it any more. A reset acknowledges nothing, so that a program may have read the
  /// request. If the peer has ended the connection and then reset it, as it was closed already, the library finds no
  /// error when it reads, and EPIPE when it writes; after a mere reset it finds ECONNRESET, unless it encrypts.
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

/// The sockets by their descriptors, which are small numbers.
struct WatchTable {
  private var places: [SocketWatch?] = []

  subscript(descriptor: Int32) -> SocketWatch? {
    get { places.indices.contains(Int(descriptor)) ? places[Int(descriptor)] : nil }
    set {
      let index = Int(descriptor)
      guard index >= 0 else { return }
      if index >= places.count { places.append(contentsOf: repeatElement(nil, count: index + 1 - places.count)) }
      places[index] = newValue
    }
  }

  /// All of them.
  ///
  /// - Complexity: O(n) in the largest descriptor.
  var all: [SocketWatch] { places.compactMap { $0 } }
}

extension Loader {
  /// A socket was made; it is watched when the library asks for it.
  func noteOpened(_ descriptor: Int32, isOfConnection: Bool = true) {
    forget(descriptor)
    // It is released when the socket is closed, or the loader is.
    let source = RunLoop.DescriptorSource(descriptor: descriptor, events: []) { [self] source, events in
      happened(source.descriptor, events)
    }
    source.pause()
    watches[descriptor] = SocketWatch(source, isOfConnection: isOfConnection)
  }

  private func happened(_ descriptor: Int32, _ events: RunLoop.DescriptorSource.Events) {
    guard let watch = watches[descriptor] else { return }
    // What has come stays in the socket until the library asks for it.
    guard watch.isWanted else { return watch.source.pause() }
    var bits = 0
    if events.contains(.readable) {
      bits |= Int(clc_select_in)
      watch.attempt?.noteActivity()
    }
    if events.contains(.writable) { bits |= Int(clc_select_out) }
    if !events.isDisjoint(with: [.error, .hangUp]) { bits |= Int(clc_select_error) }
    act(descriptor, Int32(bits))
    // The library may have closed it, and its number may be another's by now.
    if events.contains(.readable), watches[descriptor] === watch { lookForFlood(watch) }
  }

  /// Ends the request of a connection on which more and more comes that the library throws away and reports nothing of,
  /// such as what may stand behind the length of a chunk.
  private func lookForFlood(_ watch: SocketWatch) {
    guard let attempt = watch.attempt, watch.flood == nil, watch.isFlooded() else { return }
    later { [self] in end(attempt, Attempt.flooded) }
  }

  /// The library wants to know of a socket; the reason if that is impossible.
  func watch(_ descriptor: Int32, _ what: Int32) -> RunLoopError? {
    if Int(what) == Int(clc_poll_remove) {
      watches[descriptor]?.rest()
      return nil
    }
    // One that the library has made itself, such as its own pair for waking it.
    if watches[descriptor] == nil { noteOpened(descriptor, isOfConnection: false) }
    guard let watch = watches[descriptor] else { return nil }
    var events: RunLoop.DescriptorSource.Events = []
    if Int(what) & Int(clc_poll_in) != 0 { events.insert(.readable) }
    if Int(what) & Int(clc_poll_out) != 0 { events.insert(.writable) }
    watch.isWanted = true
    do throws(RunLoopError) {
      try watch.source.watch(for: events)
      if !watch.isAdded {
        try loop.add(watch.source, forMode: .common)
        watch.isAdded = true
      }
      return nil
    } catch {
      return error
    }
  }

  func close(_ descriptor: Int32) {
    watches[descriptor]?.noteClosing()
    forget(descriptor)
    _ = RunLoopLibC.close(descriptor)
  }

  /// A socket of a connection that speaks HTTP/2 from its beginning, without encryption: what comes on it before an
  /// answer is no sign of one.
  ///
  /// - Throws: What starting the thread of the guard throws: without it a server could keep the loader indefinitely.
  func notePlainHTTP2(_ descriptor: Int32) throws(ThreadError) {
    let known = floodGuard ?? FloodGuard()
    let flood = try known.add(descriptor)
    floodGuard = known
    watches[descriptor]?.speaksHTTP2 = true
    watches[descriptor]?.attempt = nil
    watches[descriptor]?.flood = flood
  }

  private func forget(_ descriptor: Int32) {
    guard let watch = watches[descriptor] else { return }
    watches[descriptor] = nil
    // Its number may be another's by now.
    if watch.hadPeerEnded == nil { watch.hadPeerEnded = false }
    if watch.flood != nil { floodGuard?.remove(descriptor) }
    watch.source.invalidate()
    guard let ends = watch.ends else { return }
    if connections[ends] === watch { connections[ends] = nil }
    let slot = Int(ends.own.port) % Self.lateSize
    if lately[slot] === watch { lately[slot] = nil }
  }

  /// The socket of a connection.
  ///
  /// - Parameter opened: The sockets that it probably is, if no request was sent on it before.
  /// - Complexity: O(1), and O(n) for the first request on a connection that another transfer has opened.
  func connection(_ said: SocketWatch.Said, opened: [Int32]) -> SocketWatch? {
    guard let port = UInt16(exactly: said.ownPort) else { return nil }
    let slot = Int(port) % Self.lateSize
    if let known = lately[slot], known.isSaid(said) { return known }
    guard let ends = SocketWatch.Ends(own: said.own, said.ownPort, peer: said.peer, said.peerPort),
      let found = connection(ends, opened: opened)
    else { return nil }
    found.note(said)
    lately[slot] = found
    return found
  }

  func connection(_ ends: SocketWatch.Ends, opened: [Int32]) -> SocketWatch? {
    func note(_ descriptor: Int32) {
      guard let watch = watches[descriptor], watch.ends == nil, let found = SocketWatch.Ends(of: descriptor) else {
        return
      }
      watch.ends = found
      connections[found] = watch
    }
    if connections[ends] == nil { for descriptor in opened { note(descriptor) } }
    if connections[ends] == nil { for watch in watches.all { note(watch.source.descriptor) } }
    return connections[ends]
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

// What libcurl calls.

let loaderSocketFunction: clc_socket_function = { easy, descriptor, what, context, _ in
  guard let context else { return 0 }
  let loader = Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue()
  // An answer other than zero would end every transfer.
  if let error = loader.watch(descriptor, what), let easy { loader.fail(easy, error) }
  return 0
}

let loaderTimerFunction: clc_timer_function = { _, milliseconds, context in
  guard let context else { return 0 }
  Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue().libraryWants(milliseconds)
  return 0
}

let loaderCloseFunction: clc_close_socket_function = { context, descriptor in
  guard let context else { return 0 }
  Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue().close(descriptor)
  return 0
}
