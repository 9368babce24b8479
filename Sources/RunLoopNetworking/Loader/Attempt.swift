// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import Glibc
import RunLoopCore
import RunLoopPorts
import Synchronization

/// What one exchange with a server is to be.
struct Exchange {
  var address: WebAddress
  var method: String
  /// All fields that the library does not make.
  var fields: [HTTP.Headers.Field]
  /// From which byte on the body is asked for.
  var range: Int64?
  /// The addresses of the host, or of the proxy; empty if the library needs none.
  var addresses: [SocketAddress]
  /// Whether no kept connection may be used.
  var isFresh: Bool
  var proxy: WebAddress?
}

/// What a transfer makes of bytes that it is given.
enum Take {
  case taken
  /// They are to be given again later.
  case pause
  /// No more: either it has failed, or enough has come.
  case stop
}

/// One exchange, by one of libcurl's transfers.
///
/// The loader's thread.
final class Attempt {
  unowned let loader: Loader
  let transfer: Transfer
  let easy: OpaquePointer
  let exchange: Exchange
  private(set) var reader: HeadReader
  private let source: (any BodySource)?
  private var lists: [OpaquePointer] = []
  private let errorBuffer: UnsafeMutablePointer<CChar>
  /// Why we ended it, in the place of what the library says.
  private(set) var failure: HTTP.Error?
  /// Whether the connection had bytes that nobody asked for, so that another is needed.
  private(set) var needsFresh = false
  /// Whether it has left the library's queue.
  private(set) var hasBegun = false
  /// Whether it waits for a connection of another that may take it, too.
  var waitsForMultiplexing = false
  private(set) var requests = 0
  private(set) var sent: Int64 = 0
  private(set) var hasSentAll = false
  private var opened: [Int32] = []
  private var connection: SocketWatch?
  /// Why a socket could not be made.
  private var socketFailure: String?
  /// Whether the proxy has asked for its credential.
  private(set) var isAskedByProxy = false
  private(set) var isReceivingPaused = false
  private(set) var isSendingPaused = false

  static let errorSize = 256
  /// What names it, never again; not zero.
  let number: UInt
  private static let lastNumber = Atomic<UInt>(0)

  init(_ loader: Loader, _ transfer: Transfer, _ easy: OpaquePointer, _ exchange: Exchange, _ source: (any BodySource)?)
  {
    self.loader = loader
    self.transfer = transfer
    self.easy = easy
    self.exchange = exchange
    self.source = source
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    reader = HeadReader(limit: transfer.configuration.maximumHead)
    errorBuffer = .allocate(capacity: Self.errorSize)
    errorBuffer.initialize(repeating: 0, count: Self.errorSize)
    hasBegun = !CurlLibrary.asksBeforeRequest
  }

  deinit { errorBuffer.deallocate() }

  /// Whether it must not be sent twice.
  private var isOnce: Bool { !HTTP.Request.isIdempotent(exchange.method) }

  func fail(_ error: HTTP.Error) { if failure == nil { failure = error } }

  /// Bytes have come on its connection.
  func noteActivity() { if transfer.attempt === self { transfer.noteActivity() } }

  /// Gives the lists and the body back; the library has let go of them.
  func release() {
    for list in lists { clc_list_free(list) }
    lists = []
    source?.close()
  }

  func append(_ texts: [String]) -> OpaquePointer? {
    var list: OpaquePointer?
    for text in texts { list = clc_list_append(list, text) }
    if let list { lists.append(list) }
    return list
  }

  /// What has come of it, when the library says that it has ended.
  func outcome(_ code: Int32) -> HTTP.Error? {
    if let failure { return failure }
    if code == 0 {
      guard reader.isComplete else {
        return HTTP.Error(.connectionLost, "the connection ended within the head of the answer")
      }
      guard !wasCut else {
        return HTTP.Error(.connectionLost, "the encrypted connection was cut, and the body has no length")
      }
      return nil
    }
    let said = CurlFailure(
      code: code, text: String(cString: errorBuffer),
      systemError: Int32(clc_get_long(easy, Int32(clc_info_system_error))),
      connectStatus: clc_get_long(easy, Int32(clc_info_connect_code)), usesProxy: exchange.proxy != nil,
      wasConnected: requests > 0 || reader.hasBegun, isBeforeAnswer: !reader.hasBegun,
      wantedCertificate: clc_wanted_certificate(number) != 0)
    return HTTP.Error(said.errorCode, socketFailure.map { "\(said.detail); \($0)" } ?? said.detail)
  }

  /// Whether the end of the connection is the only end of the body, and it is not the server's.
  private var wasCut: Bool {
    guard reader.endsWithConnection, exchange.address.isTLS, CurlLibrary.usesOpenSSL, clc_notes_ends() != 0,
      let connection, connection.opener != 0
    else { return false }
    return exchange.method != "HEAD" && clc_was_ended(connection.opener) == 0
  }

  var timings: HTTP.Timings {
    func time(_ info: some BinaryInteger) -> Duration { .microseconds(clc_get_offset(easy, Int32(info))) }
    var timings = HTTP.Timings()
    timings.connected = time(clc_info_time_connected)
    timings.secured = time(clc_info_time_shaken)
    timings.sent = time(clc_info_time_sent)
    timings.firstByte = time(clc_info_time_first_byte)
    return timings
  }

  // Holding, outside of the library.

  /// Lets the library give what it has kept.
  func resumeReceiving() {
    guard isReceivingPaused else { return }
    isReceivingPaused = false
    applyPause()
  }

  /// The body that is sent has something, or an end.
  func resumeSending() {
    guard isSendingPaused else { return }
    isSendingPaused = false
    applyPause()
  }

  private func applyPause() {
    let what = (isReceivingPaused ? Int(clc_pause_receiving) : 0) | (isSendingPaused ? Int(clc_pause_sending) : 0)
    loader.inside { _ = clc_easy_pause(easy, Int32(what)) }
  }
}

// What the library calls. Nothing here calls the library.
extension Attempt {
  var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
  static func at(_ context: UnsafeMutableRawPointer?) -> Attempt? {
    context.map { Unmanaged<Attempt>.fromOpaque($0).takeUnretainedValue() }
  }
  var errorText: UnsafeMutableRawPointer { UnsafeMutableRawPointer(errorBuffer) }
  var uploadSize: Int64? { source?.length }
  var hasBody: Bool { source != nil }

  /// A line of a head or a trailer; true to go on.
  func takeLine(_ line: UnsafeRawBufferPointer) -> Bool {
    guard failure == nil else { return false }
    transfer.noteActivity()
    if isAskedByProxy, reader.isComplete, line.prefix(5).elementsEqual("HTTP/".utf8) {
      // The library has asked again, with the proxy's credential.
      reader = HeadReader(limit: transfer.configuration.maximumHead)
    }
    switch reader.take(line) {
    case .more: return true
    case .failed(let code, let detail): fail(HTTP.Error(code, detail))
    case .head(let head):
      isAskedByProxy = head.status == 407 && exchange.proxy?.user != nil
      if exchange.address.isTLS { loader.note(exchange.address.origin, multiplexes: head.version == "2") }
      if head.version == "2" {
        connection?.speaksHTTP2 = true
        connection?.attempt = nil
      } else {
        connection?.speaksHTTP1 = true
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

  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard failure == nil else { return 0 }
    guard reader.isComplete else {
      fail(HTTP.Error(.badServerResponse, "the body begins before the end of the head"))
      return 0
    }
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
    transfer.noteActivity()
    switch source.read(into: buffer) {
    case .bytes(let count):
      sent += Int64(count)
      hasSentAll = source.length == sent
      transfer.noteSent(sent, of: source.length)
      return count
    case .end:
      hasSentAll = true
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
    guard sent > 0 else { return Int32(clc_seek_ok) }
    guard !isOnce || isAskedByProxy, let source, source.rewind() else {
      fail(HTTP.Error(.connectionLost, "the connection ended while the request was sent, which is not sent twice"))
      return Int32(clc_seek_fail)
    }
    sent = 0
    return Int32(clc_seek_ok)
  }

  /// A connection is there, and the request is about to be sent.
  func aboutToSend(_ ends: SocketWatch.Ends?) -> Int32 {
    guard failure == nil else { return Int32(clc_prerequest_abort) }
    requests += 1
    hasBegun = true
    waitsForMultiplexing = false
    transfer.noteActivity()
    if requests > 1, transfer.hasAnswer, !isAskedByProxy {
      fail(HTTP.Error(.badServerResponse, "the library asks again after an answer"))
      return Int32(clc_prerequest_abort)
    }
    if requests > 1, isOnce, !isAskedByProxy {
      fail(HTTP.Error(.connectionLost, "the kept connection ended under a request that is not sent twice"))
      return Int32(clc_prerequest_abort)
    }
    connection = ends.flatMap { loader.connection($0, opened: opened) }
    if connection?.speaksHTTP2 == false { connection?.attempt = self }
    if let connection, loader.hasStrayBytes(connection) {
      needsFresh = true
      fail(HTTP.Error(.badServerResponse, "bytes came that nobody has asked for"))
      return Int32(clc_prerequest_abort)
    }
    transfer.hasConnected()
    return Int32(clc_prerequest_ok)
  }

  func openSocket(_ wanted: clc_wanted_socket) -> Int32 {
    hasBegun = true
    waitsForMultiplexing = false
    transfer.noteActivity()
    do throws(SystemError) {
      let descriptor = try SystemCall.socket.make {
        let number = socket(wanted.family, wanted.type | Int32(SOCK_CLOEXEC.rawValue), wanted.protocol)
        return number < 0 ? -errno : number
      }
      opened.append(descriptor)
      loader.noteOpened(descriptor)
      loader.watches[descriptor]?.attempt = self
      loader.watches[descriptor]?.opener = number
      return descriptor
    } catch {
      // The library goes on with the next address.
      socketFailure = "\(error)"
      return -1
    }
  }
}
