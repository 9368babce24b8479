// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopThreads
import RunLoopSockets
import Synchronization

/// The result of delivering bytes to a transfer.
enum Take {
  case taken
  /// Deliver the same bytes again later.
  case pause
  /// Stop: the transfer has failed, or enough has arrived.
  case stop
}

/// One exchange, carried out by a libcurl transfer on the loader's thread.
final class Attempt {
  // No variable is mutated across a call to other code, so they skip the exclusivity check.

  /// The loader, which releases its attempts when it closes.
  let loader: Loader
  let transfer: Transfer
  let handle: Handle
  let exchange: Exchange
  /// The index in the list of active attempts, which the loader manages.
  @exclusivity(unchecked) var place: Int?
  /// The parser state of the response, replaced for each response that libcurl delivers.
  @exclusivity(unchecked) private(set) var reading: Reading
  /// The progress of sending the body, replaced each time libcurl sends the body.
  @exclusivity(unchecked) private var sending = Sending()
  private let source: (any BodySource)?
  /// The error with which we ended the attempt, which takes precedence over libcurl's.
  @exclusivity(unchecked) private(set) var failure: HTTP.Error?
  /// Whether the connection had unsolicited data, so that another one is needed.
  @exclusivity(unchecked) private(set) var needsFresh = false
  /// The reason to send the request again in another attempt; nil if it is not sent again.
  @exclusivity(unchecked) var resend: HTTP.ResendReason?
  /// Whether libcurl had reported no failure when it last sent the request again.
  @exclusivity(unchecked) var wasWithoutFailure = false
  /// Whether another attempt opened the connection.
  @exclusivity(unchecked) private(set) var isReused = false
  /// Whether the attempt has left libcurl's queue.
  @exclusivity(unchecked) private(set) var hasBegun = false
  /// Whether the attempt is waiting for another attempt's connection that may multiplex it.
  @exclusivity(unchecked) var waitsForMultiplexing = false
  @exclusivity(unchecked) private(set) var requests = 0
  /// The deadline for a connection that is being made.
  @exclusivity(unchecked) var connectDue = Tick.never
  @exclusivity(unchecked) var opened: [Int32] = []
  @exclusivity(unchecked) var connection: SocketWatch?
  /// The data collected for a report; nil if no report is wanted.
  @exclusivity(unchecked) var record: AttemptRecord?
  /// The trust evaluation for the connection that the attempt opens.
  @exclusivity(unchecked) var evaluation: TrustEvaluation?
  var socketFailure: String?
  @exclusivity(unchecked) private(set) var isAskedByProxy = false
  /// Whether the proxy asked for it after a body was sent that cannot be sent again.
  private(set) var needsBodyForProxy = false
  /// The number of times libcurl has polled for more of the proxy's CONNECT response, which it reads byte by byte.
  private var looksAtProxy = 0
  /// The maximum size of such a response in bytes.
  static let mostOfProxy = 2 * Transfer.drainLimit
  @exclusivity(unchecked) private(set) var isReceivingPaused = false {
    didSet { if isReceivingPaused != oldValue { connection?.flood?.noteHold(isReceivingPaused) } }
  }
  @exclusivity(unchecked) private(set) var isSendingPaused = false

  struct Reading {
    var reader: HeadReader
    /// The parser of the body's chunks; nil if the body is not chunked.
    var chunks: ChunkReader?
  }

  private struct Sending {
    var count: Int64 = 0
    var isComplete = false
  }

  /// A unique number that identifies the attempt; never zero.
  let number: UInt
  // Relaxed, because only the uniqueness of each number matters.
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

  /// Whether the connection was ended because too much data arrived that is not part of a response.
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
  /// The number of bytes of the body that libcurl has read since it last began to send the request.
  var readCount: Int64 { sending.count }

  /// The maximum number of times libcurl sends a request again by itself.
  static let mostRepetitions = 5

  /// The reason libcurl may send the request again; nil if it must not.
  private var reasonToRepeat: HTTP.ResendReason? {
    guard exchange.allowsResending else { return nil }
    if isUnprocessed { return .unprocessed }
    return exchange.method.isIdempotent ? .connectionEnded : nil
  }

  /// Whether the server has guaranteed that it did not process the request that libcurl is about to send again, or has
  /// received nothing of it.
  ///
  /// libcurl sends a request again before its response has begun in two cases. Either the connection has failed, which
  /// leaves an error message, although an HTTP/1 connection may end without one. Or the HTTP/2 stream was rejected: it
  /// was reset with REFUSED_STREAM, was above the last stream of a GOAWAY, or was never started.
  var isUnprocessed: Bool {
    guard let connection else { return false }
    // An HTTP/1 connection is only reused after a response.
    guard connection.speaksHTTP1 else { return !hasErrorText }
    connection.noteEndBeforeRequest()
    // OpenSSL may have written some records before it reports a failure.
    return connection.endedBeforeRequest || hasWrittenNothing && !(hasErrorText && isEncrypted)
  }

  private var hasErrorText: Bool { handle.errorText.pointee != 0 }
  /// Whether libcurl found no error, or only that the peer had already ended the connection.
  ///
  /// With TLS, its error number proves nothing: before libcurl closes a connection, it sends a close_notify, which
  /// fails with EPIPE after any other error.
  var hasNoResetError: Bool {
    !hasErrorText || !isEncrypted && clc_get_long(easy, Int32(clc_info_system_error)) == Int(EPIPE)
  }
  /// Whether OpenSSL is used on the socket, for the server or for a proxy.
  private var isEncrypted: Bool { exchange.address.isTLS || exchange.proxy?.kind == .https }

  var hasWrittenNothing: Bool {
    CurlLibrary.countsRequest && clc_get_long(easy, Int32(clc_info_request_size)) == 0
  }

  func fail(_ error: HTTP.Error) { if failure == nil { failure = error } }

  func noteActivity() { if transfer.attempt === self { transfer.noteActivity() } }

  /// Closes the body after libcurl has released it.
  func release() {
    source?.close()
    isReceivingPaused = false
    // The attempt receives no more events.
    if let connection, connection.attempt === self { connection.attempt = nil }
    for descriptor in opened where loader.watches[descriptor]?.attempt === self {
      loader.watches[descriptor]?.attempt = nil
    }
  }

  // MARK: Holding. Called outside libcurl.

  /// Lets libcurl deliver the bytes that it has kept.
  func resumeReading() {
    guard isReceivingPaused else { return }
    isReceivingPaused = false
    applyPause()
  }

  /// Called when the request's body has more bytes, or its end.
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

// MARK: - Called by libcurl
// Nothing here calls libcurl, except to query this handle or to set an option that is read with the next bytes.
extension Attempt {
  var uploadSize: Int64? { source?.length }
  var hasBody: Bool { source != nil }

  /// Handles a line of headers or trailers, and returns whether to continue.
  func takeLine(_ line: UnsafeRawBufferPointer) -> Bool {
    guard failure == nil else { return false }
    connection?.noteProgress()
    transfer.noteActivity(at: loader.entered)
    if isAskedByProxy, reader.isComplete, line.prefix(5).elementsEqual("HTTP/".utf8) {
      // libcurl has sent the request again, with the proxy's credential.
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

  /// Parses bytes of a chunked body as received.
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

  /// Called when libcurl wants to send the body again on another connection.
  func rewind() -> Int32 {
    guard hasSentSome else { return Int32(clc_seek_ok) }
    let reason = reasonToRepeat
    guard isAskedByProxy || reason != nil, let source, source.rewind() else {
      needsBodyForProxy = isAskedByProxy
      // A sequence cannot be rewound, but another attempt gets a new one.
      resend = reason
      fail(HTTP.Error(.connectionLost, "the connection ended while the request was sent, which is not sent twice"))
      return Int32(clc_seek_fail)
    }
    sending = Sending()
    return Int32(clc_seek_ok)
  }

  /// Called when the attempt leaves libcurl's queue and begins to wait for the peer.
  func begin() {
    let waited = !hasBegun || waitsForMultiplexing
    hasBegun = true
    waitsForMultiplexing = false
    if transfer.attempt === self { transfer.progress.waitDue = .never }
    if record != nil, record?.begun == nil { record?.begun = loader.entered }
    if waited { transfer.waitsForPeer(since: loader.entered) } else { transfer.noteActivity(at: loader.entered) }
  }

  /// Called when a connection is available and the request is about to be sent.
  func aboutToSend(_ said: SocketWatch.Said) -> Int32 {
    guard failure == nil else { return Int32(clc_prerequest_abort) }
    requests += 1
    connectDue = .never
    begin()
    // Otherwise libcurl would try again, and the server could flood the new connection, too.
    if wasFlooded {
      fail(Self.flooded)
      return Int32(clc_prerequest_abort)
    }
    if requests > 1, !isAskedByProxy, !repeats() { return Int32(clc_prerequest_abort) }
    // The previous connection is no longer needed, and may outlive this attempt.
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
    if hasBody, let connection, connection.mayBeHTTP2, !connection.speaksHTTP1 { loader.holdBack(connection) }
    transfer.hasConnected()
    return Int32(clc_prerequest_ok)
  }

  /// Returns whether libcurl may send the request again, and records the repetition.
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

  /// Called when libcurl polls for more bytes, or after some time.
  ///
  /// libcurl reads a proxy's CONNECT response byte by byte, including the body, and does not return until there is no
  /// more to read.
  func looks() -> Int32 {
    guard requests == 0, failure == nil else { return failure == nil ? 0 : 1 }
    looksAtProxy += 1
    guard looksAtProxy > Self.mostOfProxy else { return 0 }
    fail(HTTP.Error(.proxyFailed, "the proxy's answer has more than \(Self.mostOfProxy) bytes"))
    return 1
  }
}
