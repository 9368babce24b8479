// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL
import RunLoopCore

/// One end of a secured connection, without a descriptor: bytes of the peer go in, bytes for the peer come out, and
/// plain bytes on the other side.
///
/// Whoever owns it guards it by a lock. It calls nobody.
final class TLSSession {
  /// From how many bytes for the peer on no more plain bytes are taken, and none of the peer should be fed: it may make
  /// this end answer.
  static let outputLimit = 64 * 1024
  /// How many plain bytes one record has at most.
  static let recordSize = 16 * 1024

  let context: TLSContext
  /// The server's name, of a client's connection.
  let name: TLSName?
  // Whoever owns it guards it: no access meets another, and none is checked for that.
  @exclusivity(unchecked) private(set) var state = TLSState()
  /// Plain bytes that have arrived, and had no room where they were wanted.
  @exclusivity(unchecked) private(set) var plain = ByteQueue()
  /// How many bytes for the peer are there.
  @exclusivity(unchecked) private(set) var outputCount = 0
  private let handle: OpaquePointer

  /// Makes an end.
  ///
  /// - Parameters:
  ///   - context: What it has in common with others.
  ///   - serverName: The server's name for a client; with nil it is the address.
  ///   - address: Where a client connects to.
  init(_ context: TLSContext, serverName: String? = nil, address: SocketAddress? = nil) throws(TLSError) {
    var name: TLSName?
    if !context.isServer {
      do throws(TLSError) {
        name = try TLSName(serverName, connectingTo: address)
      } catch {
        // Where names are not checked, none is needed.
        guard !context.checksName, serverName == nil else { throw error }
      }
    }
    guard let handle = cos_session_make(context.handle) else { throw TLSError(.outOfMemory) }
    let isAddress = name?.asked == nil ? Int32(1) : 0
    if let name, cos_session_name(handle, name.asked, context.checksName ? name.text : nil, isAddress) == 0 {
      cos_session_free(handle)
      throw TLSError(.badServerName(name.text))
    }
    if let tickets = context.tickets, let name, let ticket = tickets.take(for: name.text) {
      // It is copied, or not resumed.
      _ = cos_session_resume(handle, ticket)
      cos_ticket_free(ticket)
    }
    self.context = context
    self.name = name
    self.handle = handle
  }

  deinit { cos_session_free(handle) }

  // MARK: - Bytes of the peer

  /// Begins: a client speaks first.
  func start() {
    guard !context.isServer else { return }
    shakeHands()
    countOutput()
  }

  /// Takes bytes of the peer, and puts plain bytes where there is room; what there is no room for is kept in ``plain``.
  ///
  /// - Returns: How many plain bytes were put there.
  func receive(_ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Int {
    // After the end and after an error nothing is wanted any more.
    guard state.isHandshaking || state.reads else { return 0 }
    cos_session_lend_input(handle, bytes.baseAddress, bytes.count)
    if state.isHandshaking { shakeHands() }
    var count = 0
    while state.reads, count < room.count {
      guard let more = decrypt(UnsafeMutableRawBufferPointer(rebasing: room[count...])) else { break }
      count += more
      // A record that left room was the whole of it, and there is no other: to ask for it would take long.
      if count < room.count, cos_session_input_count(handle) == 0 { break }
    }
    if state.reads, count == room.count { keepPlain() }
    if cos_session_keep_input(handle) == 0 { state.fail(.outOfMemory) }
    keepTicket()
    countOutput()
    return count
  }

  /// Takes plain bytes that were kept.
  func takePlain(into room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, plain.count)
    plain.withBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    plain.removeFirst(count)
    return count
  }

  /// The connection below has ended.
  func transportEnded() { state.transportEnded() }

  /// The owner gives it up for a reason of its own.
  func fail(_ cause: TLSError.Cause) { state.fail(cause) }

  /// The reading side was ended by this end.
  func endedReading() { state.endedReading() }

  private func shakeHands() {
    switch Int(cos_session_shake_hands(handle)) {
    case cos_done: state.shookHands()
    case cos_wants_input: break
    case cos_peer_closed: state.peerClosed()
    default: fail()
    }
  }

  /// Decrypts once; nil: there is nothing more.
  private func decrypt(_ room: UnsafeMutableRawBufferPointer) -> Int? {
    var count = 0
    switch Int(cos_session_read(handle, room.baseAddress, room.count, &count)) {
    case cos_done: return count
    case cos_wants_input: break
    case cos_peer_closed: state.peerClosed()
    default: fail()
    }
    return nil
  }

  private func keepPlain() {
    withUnsafeTemporaryAllocation(byteCount: Self.recordSize, alignment: 16) { room in
      while state.reads, let count = decrypt(room) { plain.append(UnsafeRawBufferPointer(rebasing: room[..<count])) }
    }
  }

  private func keepTicket() {
    guard let tickets = context.tickets else { return }
    while let ticket = cos_session_take_ticket(handle) {
      if let name { tickets.put(ticket, for: name.text) } else { cos_ticket_free(ticket) }
    }
  }

  // MARK: - Bytes for the peer

  /// Encrypts plain bytes, as many as there is room for.
  ///
  /// - Returns: How many were taken.
  func write(_ bytes: UnsafeRawBufferPointer) -> Int {
    var taken = 0
    while state.writes, taken < bytes.count, outputCount < Self.outputLimit {
      let chunk = UnsafeRawBufferPointer(rebasing: bytes[taken..<min(bytes.count, taken + Self.recordSize)])
      var count = 0
      guard cos_session_write(handle, chunk.baseAddress, chunk.count, &count) == cos_done else {
        fail()
        countOutput()
        break
      }
      taken += count
      countOutput()
    }
    return taken
  }

  /// Puts bytes for the peer in front of the handshake, as they are.
  func putFirst(_ bytes: UnsafeRawBufferPointer) {
    if cos_session_put_output(handle, bytes.baseAddress, bytes.count) == 0 { state.fail(.outOfMemory) }
    countOutput()
  }

  /// Notifies the peer that nothing more is written.
  func endWriting() {
    guard state.endWriting() else { return }
    if cos_session_end_writing(handle) == cos_failed { fail() }
    countOutput()
  }

  /// Whether bytes for the peer are there.
  var hasOutput: Bool { outputCount > 0 }

  /// Whether there is something that the descriptor does not report: plain bytes, the end, or an error.
  var isReady: Bool { plain.count > 0 || state.hasEnded || state.hasFailed }

  /// After each call that may have put or taken bytes: they are asked for more often.
  private func countOutput() { outputCount = cos_session_output_count(handle) }

  /// Shows the bytes for the peer.
  func withOutput<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var count = 0
    let start = cos_session_output(handle, &count)
    return try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Drops the first bytes for the peer, which were sent.
  func sent(_ count: Int) {
    cos_session_sent(handle, count)
    countOutput()
  }

  /// Drops the output after a failure.
  func dropOutput() { if hasOutput { sent(outputCount) } }

  // MARK: - What it is

  /// The peer, for a person, with its name and its address, which the system forgets of a connection that was reset.
  func peer(of descriptor: OwnedDescriptor, at known: SocketAddress?) -> String? {
    let found = (try? descriptor.peerAddress()) ?? nil
    let address = found?.unlessUnnamed ?? known
    guard let name = name?.text, name != address?.host else { return address.map { "\($0)" } }
    return address.map { "\(name) (\($0))" } ?? name
  }

  private func fail() {
    state.fail(
      TLSError.Cause(
        error: cos_session_error(handle), text: String(cString: cos_session_error_text(handle)),
        verification: cos_session_verification(handle), name: name?.text, asked: askedName))
  }

  private var askedName: String? { cos_session_asked_name(handle).map { String(cString: $0) } }

  /// What the ends have agreed on; nil before that.
  var info: TLSInfo? {
    guard state.hasShakenHands else { return nil }
    var length = 0
    let start = cos_session_protocol(handle, &length)
    let applicationProtocol = start.map {
      String(decoding: UnsafeBufferPointer(start: $0, count: length), as: UTF8.self)
    }
    let size = cos_session_peer_certificate(handle, nil, 0)
    let certificate = [UInt8](unsafeUninitializedCapacity: size) { room, count in
      count = cos_session_peer_certificate(handle, room.baseAddress, room.count)
    }
    return TLSInfo(
      version: String(cString: cos_session_version(handle)) == "TLSv1.3" ? .tls13 : .tls12,
      cipherSuite: String(cString: cos_session_cipher(handle)),
      applicationProtocol: applicationProtocol, serverName: context.isServer ? askedName : name?.text,
      isResumed: cos_session_is_resumed(handle) != 0, peerCertificate: size == 0 ? nil : certificate)
  }
}

/// What the ends of a secured connection have agreed on.
public struct TLSInfo: Hashable, Sendable {
  /// The version of the protocol.
  public let version: TLSVersion
  /// The name of the cipher suite, such as "TLS_AES_256_GCM_SHA384".
  public let cipherSuite: String
  /// The application protocol; nil if none was agreed on.
  public let applicationProtocol: String?
  /// The server's name: the one that was checked, or that the client has asked for.
  public let serverName: String?
  /// Whether the connection resumes an earlier one.
  public let isResumed: Bool
  /// The peer's certificate, in DER; nil if it has shown none.
  public let peerCertificate: [UInt8]?
}
