// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopThreads
import RunLoopSockets
import Synchronization

/// What a transfer makes of bytes that it is given.
enum Take {
  case taken
  /// They are to be given again later.
  case pause
  /// No more: either it has failed, or enough has arrived.
  case stop
}

/// One exchange, by one of libcurl's transfers.
///
/// The loader's thread.
final class Attempt {
  // Nothing is called while a variable is being changed, so that they are not checked for overlapping accesses.

  /// It lets go of its attempts when it closes.
  let loader: Loader
  let transfer: Transfer
  let handle: Handle
  let exchange: Exchange
  /// Where the loader has it among those that the library has; the loader's.
  @exclusivity(unchecked) var place: Int?
  /// What is read of the response; a new one for each response that the library delivers.
  @exclusivity(unchecked) private(set) var reading: Reading
  /// What is sent of the body; a new one each time the library sends it.
  @exclusivity(unchecked) private var sending = Sending()
  private let source: (any BodySource)?
  /// Why we ended it, in the place of what the library says.
  @exclusivity(unchecked) private(set) var failure: HTTP.Error?
  /// Whether the connection had bytes that nobody asked for, so that another is needed.
  @exclusivity(unchecked) private(set) var needsFresh = false
  /// The reason for which another attempt sends the request again; nil if none does.
  @exclusivity(unchecked) var resend: HTTP.ResendReason?
  /// Whether the library had reported no failure when it last sent the request again.
  @exclusivity(unchecked) var wasWithoutFailure = false
  /// Whether another attempt has opened the connection.
  @exclusivity(unchecked) private(set) var isReused = false
  /// Whether it has left the library's queue.
  @exclusivity(unchecked) private(set) var hasBegun = false
  /// Whether it waits for a connection of another that may take it, too.
  @exclusivity(unchecked) var waitsForMultiplexing = false
  @exclusivity(unchecked) private(set) var requests = 0
  /// Until when a connection has to be made that it has begun to make.
  @exclusivity(unchecked) var connectDue = Tick.never
  @exclusivity(unchecked) var opened: [Int32] = []
  @exclusivity(unchecked) var connection: SocketWatch?
  /// What is noted for a report; nil if none is wanted.
  @exclusivity(unchecked) var record: AttemptRecord?
  /// What decides on the server of the connection that it makes.
  @exclusivity(unchecked) var evaluation: TrustEvaluation?
  /// Why a socket could not be made.
  var socketFailure: String?
  /// Whether the proxy has asked for its credential.
  @exclusivity(unchecked) private(set) var isAskedByProxy = false
  /// Whether the proxy has asked after a body that cannot be read again.
  private(set) var needsBodyForProxy = false
  /// How often the library has looked for more of the proxy's answer to CONNECT, byte by byte.
  private var looksAtProxy = 0
  /// How many bytes such an answer may have.
  static let mostOfProxy = 2 * Transfer.drainLimit
  @exclusivity(unchecked) private(set) var isReceivingPaused = false {
    didSet { if isReceivingPaused != oldValue { connection?.flood?.noteHold(isReceivingPaused) } }
  }
  @exclusivity(unchecked) private(set) var isSendingPaused = false

  /// What is read of a response.
  struct Reading {
    var reader: HeadReader
    /// What the body's chunks are; nil if it has none.
    var chunks: ChunkReader?
  }

  /// What is sent of a body.
  private struct Sending {
    var count: Int64 = 0
    var isComplete = false
  }

  /// What names it, never again; not zero.
  let number: UInt
  // Relaxed: each number is given once.
  private static let lastNumber = Atomic<UInt>(0)

  init(
    _ loader: Loader, _ transfer: Transfer, _ handle: Handle, _ exchange: consuming Exchange,
    _ source: (any BodySource)?
  ) {
    self.loader = loader
    self.transfer = transfer
    self.handle = handle
    reading = Self.makeReading(transfer.settings, exchange)
    self.exchange = exchange
    self.source = source
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    hasBegun = !CurlLibrary.asksBeforeRequest
    if transfer.settings.value.reportsAttempts {
      record = AttemptRecord(started: loader.loop.clockNow, reason: transfer.resends.last)
    }
  }

  var easy: OpaquePointer { handle.easy }

  private static func makeReading(_ settings: OwnConfiguration, _ exchange: Exchange) -> Reading {
    let speaksHTTP2 =
      switch settings.value.version {
      case .automatic: exchange.address.isTLS
      case .http1: false
      case .http2: true
      }
    return Reading(
      reader: HeadReader(
        limit: settings.value.maximumHeaderSize, speaksHTTP2: speaksHTTP2, isStrict: settings.value.strict))
  }

  /// Whether its connection was ended as too much came on it that is part of no answer.
  var wasFlooded: Bool {
    guard let connection else { return false }
    return connection.flood?.wasFlooded == true || connection.opener != 0 && clc_was_flooded(connection.opener) != 0
  }

  static let flooded = HTTP.Error(
    .badServerResponse, "the server sends more and more that is part of no answer")

  var speaksPlainHTTP2: Bool {
    !exchange.address.isTLS && exchange.proxy == nil && transfer.configuration.version == .http2
  }

  var reader: HeadReader { reading.reader }
  var hasSentAll: Bool { sending.isComplete }
  var hasSentSome: Bool { readCount > 0 }
  /// How many bytes of the body the library has read since it last began to send the request.
  var readCount: Int64 { sending.count }

  /// How often the library sends a request again by itself.
  static let mostRepetitions = 5

  /// Why the library may send the request again; nil if it must not.
  private var reasonToRepeat: HTTP.ResendReason? {
    guard exchange.allowsResending else { return nil }
    if isUnprocessed { return .unprocessed }
    return exchange.method.isIdempotent ? .connectionEnded : nil
  }

  /// Whether the server has promised not to have processed the request that the library is about to send again, or
  /// has received nothing of it.
  ///
  /// The library sends a request again before its response has begun, in two cases. The connection has failed, of which
  /// it leaves a text; a connection of HTTP/1 may have ended without one. Or the stream of HTTP/2 was rejected: reset
  /// as such, above the last one of GOAWAY, or never begun.
  var isUnprocessed: Bool {
    guard let connection else { return false }
    // One of HTTP/1 is used again only after a response.
    guard connection.speaksHTTP1 else { return !hasErrorText }
    connection.noteEndBeforeRequest()
    // OpenSSL may have written some records when it reports that it has failed.
    return connection.endedBeforeRequest || hasWrittenNothing && !(hasErrorText && isEncrypted)
  }

  /// Whether the library has written down an error.
  private var hasErrorText: Bool { handle.errorText.pointee != 0 }
  /// Whether the library has found no error, or that the peer had ended the connection before.
  ///
  /// Where it encrypts, its error number proves nothing: before it closes a connection it sends a close_notify, which
  /// fails with EPIPE after any other error.
  var hasNoResetError: Bool {
    !hasErrorText || !isEncrypted && clc_get_long(easy, Int32(clc_info_system_error)) == Int(EPIPE)
  }
  /// Whether OpenSSL is between the library and the socket, for the server or for a proxy.
  private var isEncrypted: Bool { exchange.address.isTLS || exchange.proxy?.kind == .https }

  var hasWrittenNothing: Bool {
    CurlLibrary.countsRequest && clc_get_long(easy, Int32(clc_info_request_size)) == 0
  }

  func fail(_ error: HTTP.Error) { if failure == nil { failure = error } }

  /// Bytes have come on its connection.
  func noteActivity() { if transfer.attempt === self { transfer.noteActivity() } }

  /// Gives the body back; the library has let go of it.
  func release() {
    source?.close()
    isReceivingPaused = false
    // Nothing more comes to it.
    if let connection, connection.attempt === self { connection.attempt = nil }
    for descriptor in opened where loader.watches[descriptor]?.attempt === self {
      loader.watches[descriptor]?.attempt = nil
    }
  }

  // Holding, outside of the library.

  /// Lets the library give what it has kept.
  func resumeReading() {
    guard isReceivingPaused else { return }
    isReceivingPaused = false
    applyPause()
  }

  /// The body that is sent has something, or an end.
  func resumeSending() {
    guard isSendingPaused else { return }
    isSendingPaused = false
    if transfer.attempt === self { transfer.waitsForPeer(since: loader.loop.clockNow) }
    applyPause()
  }

  private func applyPause() {
    let what = (isReceivingPaused ? Int(clc_pause_receiving) : 0) | (isSendingPaused ? Int(clc_pause_sending) : 0)
    loader.inside { _ = clc_easy_pause(easy, Int32(what)) }
    loader.lookSoon()
  }
}

// What the library calls. Nothing here calls the library, except for an option of the attempt's own handle, which it
// reads with the next bytes, and for what it knows of this handle.
extension Attempt {
  var uploadSize: Int64? { source?.length }
  var hasBody: Bool { source != nil }

  /// A line of a head or a trailer; true to go on.
  func takeLine(_ line: UnsafeRawBufferPointer) -> Bool {
    guard failure == nil else { return false }
    connection?.noteProgress()
    transfer.noteActivity(at: loader.entered)
    if isAskedByProxy, reader.isComplete, line.prefix(5).elementsEqual("HTTP/".utf8) {
      // The library has asked again, with the proxy's credential.
      reading = Self.makeReading(transfer.settings, exchange)
    }
    switch reading.reader.take(line) {
    case .more: return true
    case .interim:
      transfer.takeInterim(reader)
      return true
    case .failed(let code, let detail): fail(HTTP.Error(code, detail))
    case .head(let head):
      isAskedByProxy = head.status == 407 && exchange.proxyOfHTTP?.user != nil
      if exchange.address.isTLS { loader.note(exchange.address, multiplexes: head.version == "2") }
      if head.version == "2" {
        connection?.speaksHTTP2 = true
        connection?.attempt = nil
      } else {
        connection?.speaksHTTP1 = true
      }
      if reader.isChunked {
        reading.chunks = ChunkReader()
        handle.reportsWire = true
      }
      do throws(HTTP.Error) {
        try transfer.take(head, from: self)
        return true
      } catch {
        fail(error)
      }
    }
    return false
  }

  /// Bytes of a body in chunks, as they stand on the wire.
  func takeWire(_ bytes: UnsafeRawBufferPointer) { if reading.chunks != nil { reading.chunks?.take(bytes) } }

  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard failure == nil else { return 0 }
    guard reader.isComplete else {
      fail(HTTP.Error(.badServerResponse, "the body begins before the end of the head"))
      return 0
    }
    connection?.noteProgress()
    transfer.noteActivity(at: loader.entered)
    if loader.yields(self, bytes.count) {
      isReceivingPaused = true
      return Int(clc_write_pause)
    }
    do throws(HTTP.Error) {
      switch try transfer.take(bytes) {
      case .taken: return bytes.count
      case .pause:
        isReceivingPaused = true
        return Int(clc_write_pause)
      case .stop: return 0
      }
    } catch {
      fail(error)
      return 0
    }
  }

  func readBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard failure == nil, let source else { return Int(clc_read_abort) }
    connection?.noteProgress()
    transfer.noteActivity(at: loader.entered)
    switch source.read(into: buffer) {
    case .bytes(let count):
      sending.count += Int64(count)
      sending.isComplete = source.length == sending.count
      transfer.noteSent(sending.count, of: source.length)
      return count
    case .end:
      sending.isComplete = true
      return 0
    case .wait:
      isSendingPaused = true
      return Int(clc_read_pause)
    case .failed(let detail):
      fail(HTTP.Error(.invalidRequest, detail))
      return Int(clc_read_abort)
    }
  }

  /// The library wants to send the body again, on another connection.
  func rewind() -> Int32 {
    guard hasSentSome else { return Int32(clc_seek_ok) }
    guard isAskedByProxy || reasonToRepeat != nil, let source, source.rewind() else {
      needsBodyForProxy = isAskedByProxy
      fail(HTTP.Error(.connectionLost, "the connection ended while the request was sent, which is not sent twice"))
      return Int32(clc_seek_fail)
    }
    sending = Sending()
    return Int32(clc_seek_ok)
  }

  /// It has left the library's queue: from now on it waits for the other side.
  func begin() {
    let waited = !hasBegun || waitsForMultiplexing
    hasBegun = true
    waitsForMultiplexing = false
    if transfer.attempt === self { transfer.progress.waitDue = .never }
    if record != nil, record?.begun == nil { record?.begun = loader.entered }
    if waited { transfer.waitsForPeer(since: loader.entered) } else { transfer.noteActivity(at: loader.entered) }
  }

  /// A connection is there, and the request is about to be sent.
  func aboutToSend(_ said: SocketWatch.Said) -> Int32 {
    guard failure == nil else { return Int32(clc_prerequest_abort) }
    requests += 1
    connectDue = .never
    begin()
    // The library would try again, and the server too.
    if wasFlooded {
      fail(Self.flooded)
      return Int32(clc_prerequest_abort)
    }
    if requests > 1, !isAskedByProxy, !repeats() { return Int32(clc_prerequest_abort) }
    // The connection before has been asked, and may be closed when this attempt is no more.
    if let connection, connection.attempt === self { connection.attempt = nil }
    connection = loader.connection(said, opened: opened)
    if connection?.speaksHTTP2 == false { connection?.attempt = self }
    if exchange.address.isTLS && !mayShare || connection?.isSpoiled == true {
      needsFresh = true
      fail(HTTP.Error(.connectionLost, "the kept connection has ended, or has bytes that nobody has asked for"))
      return Int32(clc_prerequest_abort)
    }
    isReused = connection.map { $0.opener != number } ?? false
    if isReused, connection?.speaksHTTP1 == true, exchange.allowsResending, !exchange.method.isIdempotent {
      connection?.noteRequest()
    }
    noteEnds(said)
    transfer.hasConnected()
    return Int32(clc_prerequest_ok)
  }

  /// Whether the library may send the request again, which is noted.
  private func repeats() -> Bool {
    guard !transfer.hasAnswer else {
      fail(HTTP.Error(.badServerResponse, "the library asks again after an answer"))
      return false
    }
    guard let reason = reasonToRepeat else {
      fail(HTTP.Error(.connectionLost, "the kept connection ended under a request that is not sent twice"))
      return false
    }
    wasWithoutFailure = reason == .unprocessed
    noteRepetition(reason)
    transfer.noteResend(reason)
    return true
  }

  /// The library looks for more bytes, or some time has passed.
  ///
  /// It reads a proxy's answer to CONNECT byte by byte, body and all, and lets nobody else come before there are no
  /// more.
  func looks() -> Int32 {
    guard requests == 0, failure == nil else { return failure == nil ? 0 : 1 }
    looksAtProxy += 1
    guard looksAtProxy > Self.mostOfProxy else { return 0 }
    fail(HTTP.Error(.proxyFailed, "the proxy's answer has more than \(Self.mostOfProxy) bytes"))
    return 1
  }
}
