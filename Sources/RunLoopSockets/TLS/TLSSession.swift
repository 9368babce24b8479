// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL
import RunLoopCore

/// One end of a TLS connection, independent of a descriptor, which converts between encrypted and plain bytes.
final class TLSSession {
  /// The number of output bytes at which no more plain bytes are taken.
  ///
  /// Input should not be fed then either, because it may require a response.
  static let outputLimit = 64 * 1024
  /// The maximum number of plain bytes in a record.
  static let recordSize = 16 * 1024

  let context: TLSContext
  /// The server's name, for a client.
  let name: TLSName?
  // The owner's lock guards these variables, so accesses cannot overlap and exclusivity is not checked.
  @exclusivity(unchecked) private(set) var state = TLSState()
  /// Decrypted bytes that did not fit in the reader's buffer.
  @exclusivity(unchecked) private(set) var plain = ByteQueue()
  /// The number of encrypted bytes waiting to be sent.
  @exclusivity(unchecked) private(set) var outputCount = 0
  private let handle: OpaquePointer

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - context: The context of the connection.
  ///   - serverName: The server's name, for a client. With `nil`, the name is the address.
  ///   - address: The address that a client connects to.
  init(_ context: TLSContext, serverName: String? = nil, address: SocketAddress? = nil) throws(TLSError) {
    var name: TLSName?
    if !context.isServer {
      do throws(TLSError) {
        name = try TLSName(serverName, connectingTo: address)
      } catch {
        // If names are not checked, none is required.
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
      // OpenSSL copies the ticket. If that fails, the session is not resumed.
      _ = cos_session_resume(handle, ticket)
      cos_ticket_free(ticket)
    }
    self.context = context
    self.name = name
    self.handle = handle
  }

  deinit { cos_session_free(handle) }

  // MARK: - Input

  /// Starts the handshake, in which a client sends the first message.
  func start() {
    guard !context.isServer else { return }
    shakeHands()
    countOutput()
  }

  /// Decrypts received bytes into a buffer.
  ///
  /// Bytes that do not fit are kept in ``plain``.
  ///
  /// - Returns: The number of bytes in the buffer.
  func receive(_ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Int {
    // After the end or an error, input is ignored.
    guard state.isHandshaking || state.reads else { return 0 }
    cos_session_lend_input(handle, bytes.baseAddress, bytes.count)
    if state.isHandshaking { shakeHands() }
    var count = 0
    while state.reads, count < room.count {
      guard let more = decrypt(UnsafeMutableRawBufferPointer(rebasing: room[count...])) else { break }
      count += more
      // If a record did not fill the buffer and no input is left, there is no other record. Skip the expensive check.
      if count < room.count, cos_session_input_count(handle) == 0 { break }
    }
    if state.reads, count == room.count { keepPlain() }
    if cos_session_keep_input(handle) == 0 { state.fail(.outOfMemory) }
    keepTicket()
    countOutput()
    return count
  }

  /// Moves decrypted bytes that were kept into a buffer.
  func takePlain(into room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, plain.count)
    plain.withBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    plain.removeFirst(count)
    return count
  }

  /// The transport has reached the end of the stream.
  func transportEnded() { state.transportEnded() }

  func fail(_ cause: TLSError.Cause) { state.fail(cause) }

  /// This end has shut the reading side down.
  func endedReading() { state.endedReading() }

  private func shakeHands() {
    switch Int(cos_session_shake_hands(handle)) {
    case cos_done: state.shookHands()
    case cos_wants_input: break
    case cos_peer_closed: state.peerClosed()
    default: fail()
    }
  }

  /// Decrypts once, or returns `nil` if there is no more data.
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

  // MARK: - Output

  /// Encrypts as many bytes as there is room for.
  ///
  /// - Returns: The number of bytes taken.
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

  /// Inserts unencrypted bytes before the handshake.
  func putFirst(_ bytes: UnsafeRawBufferPointer) {
    if cos_session_put_output(handle, bytes.baseAddress, bytes.count) == 0 { state.fail(.outOfMemory) }
    countOutput()
  }

  /// Notifies the peer that nothing more will be written.
  func endWriting() {
    guard state.endWriting() else { return }
    if cos_session_end_writing(handle) == cos_failed { fail() }
    countOutput()
  }

  var hasOutput: Bool { outputCount > 0 }

  /// Whether there is something that does not make the descriptor ready: decrypted bytes, the end, or an error.
  var isReady: Bool { plain.count > 0 || state.hasEnded || state.hasFailed }

  /// Caches the count after each call that may change it, because it is read more often.
  private func countOutput() { outputCount = cos_session_output_count(handle) }

  /// Calls a closure with the encrypted bytes waiting to be sent.
  func withOutput<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var count = 0
    let start = cos_session_output(handle, &count)
    return try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Removes encrypted bytes that were sent.
  func sent(_ count: Int) {
    cos_session_sent(handle, count)
    countOutput()
  }

  func dropOutput() { if hasOutput { sent(outputCount) } }

  // MARK: - Information

  /// The peer's name and address for error messages; `known` is used if the system has lost the address after a reset.
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

  /// The negotiated parameters, or `nil` before the handshake is complete.
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

/// The negotiated parameters of a TLS connection.
public struct TLSInfo: Hashable, Sendable {
  /// The TLS version.
  public let version: TLSVersion
  /// The name of the cipher suite, such as "TLS_AES_256_GCM_SHA384".
  public let cipherSuite: String
  /// The negotiated application protocol, or `nil` if there is none.
  public let applicationProtocol: String?
  /// The server's name: for a client, the one that was verified; for a server, the one that was requested.
  public let serverName: String?
  /// Whether the connection resumes an earlier session.
  public let isResumed: Bool
  /// The peer's certificate in DER format, or `nil` if it has presented none.
  public let peerCertificate: [UInt8]?
}
