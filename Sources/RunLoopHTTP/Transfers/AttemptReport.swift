// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

extension HTTP {
  /// A report about one attempt to send a request, with a ``reason`` unless it is the first.
  public struct AttemptReport: Sendable, Hashable {
    /// The URL, without user, password, query and fragment.
    public internal(set) var url: String
    /// The reason the request was sent again; nil for the first attempt.
    public internal(set) var reason: ResendReason?
    /// The status of the response; nil if none arrived.
    public internal(set) var status: Status?
    /// Whether an existing connection was reused; the default is `false`.
    public internal(set) var isReused = false
    /// The client's address and port; nil if there was no connection, or it has no address.
    public internal(set) var localAddress: String?
    /// The address and port of the server or proxy; nil if there was no connection, or it has no address.
    public internal(set) var remoteAddress: String?
    /// The number of bytes sent, before encryption, with the headers and the body; the default is 0.
    public internal(set) var bytesSent: Int64 = 0
    /// The number of bytes received, decrypted but not decoded, with the headers and the body; the default is 0.
    public internal(set) var bytesReceived: Int64 = 0
    /// The duration of each phase, all zero by default and if libcurl resent the request by itself afterwards.
    public internal(set) var timings = Timings()
  }

  /// The duration of each phase of a request, zero by default.
  ///
  /// Except for ``nameLookup`` and ``waited``, they are measured from the moment the last connection was requested.
  public struct Timings: Sendable, Hashable {
    /// The duration of the name lookup; zero by default, and if the addresses were known.
    public var nameLookup: Duration = .zero
    /// The time spent waiting for a connection; zero by default, and set only in ``Response/attempts``.
    public var waited: Duration = .zero
    /// The time until the connection was made; zero by default, and if an existing one was reused.
    public var connected: Duration = .zero
    /// The time until the TLS handshake was complete; zero by default, and without TLS.
    public var secured: Duration = .zero
    /// The time until the request was about to be sent; the default is zero.
    public var sent: Duration = .zero
    /// The time until the first byte of the response; the default is zero.
    public var firstByte: Duration = .zero
    /// The time until the end of the response or the attempt; zero by default, and set only in ``Response/attempts``.
    public var total: Duration = .zero
  }
}

/// The data collected during an attempt for its report.
struct AttemptRecord {
  let started: Tick
  var begun: Tick?
  /// The reason the request is being sent again.
  var reason: HTTP.ResendReason?
  var ends: (own: String, peer: String)?
  /// The request size that libcurl had reported before it resent the request.
  var sizeBefore: Int64 = 0
}

extension Attempt {
  /// Reports the attempt so far, which requires that libcurl still has the handle.
  private func report(_ record: AttemptRecord) -> HTTP.AttemptReport {
    var report = HTTP.AttemptReport(url: exchange.address.safeText, reason: record.reason)
    report.isReused = isReused
    (report.localAddress, report.remoteAddress) = (record.ends?.own, record.ends?.peer)
    return report
  }

  /// Ends the report of the current attempt, because libcurl is resending the request by itself.
  func noteRepetition(_ reason: HTTP.ResendReason) {
    guard let record else { return }
    var report = report(record)
    report.bytesSent = requestSize - record.sizeBefore + sentBody
    transfer.attempts.append(report)
    self.record = AttemptRecord(
      started: loader.entered, begun: loader.entered, reason: reason, sizeBefore: requestSize)
  }

  /// The number of bytes that libcurl has written over all its attempts; without the body before 8.8.
  private var requestSize: Int64 { Int64(clc_get_long(easy, Int32(clc_info_request_size))) }

  /// The number of bytes of the body that libcurl wrote last, unless the request size includes them.
  private var sentBody: Int64 { CurlLibrary.countsBody ? 0 : clc_get_offset(easy, Int32(clc_info_sent_body)) }

  /// Reports the end of an attempt, before libcurl releases the handle.
  func noteEnd() {
    guard let record, transfer.attempt === self else { return }
    self.record = nil
    var report = report(record)
    if record.ends == nil {
      report.localAddress = end(clc_info_own_address, clc_info_own_port)
      report.remoteAddress = end(clc_info_peer_address, clc_info_peer_port)
    }
    report.status = transfer.progress.head?.status
    // libcurl keeps the length of the last body until it writes the next one.
    report.bytesSent = requestSize - record.sizeBefore + min(sentBody, readCount)
    report.bytesReceived =
      Int64(clc_get_long(easy, Int32(clc_info_header_size))) + clc_get_offset(easy, Int32(clc_info_received_body))
    report.timings = timings
    let begun = record.begun ?? loader.loop.clockNow
    report.timings.waited = .nanoseconds(begun.nanoseconds - record.started.nanoseconds)
    report.timings.total = .microseconds(clc_get_offset(easy, Int32(clc_info_time_total)))
    transfer.attempts.append(report)
  }

  /// One end of the connection, according to libcurl.
  private func end(_ address: some BinaryInteger, _ port: some BinaryInteger) -> String? {
    guard let text = clc_get_pointer(easy, Int32(address)) else { return nil }
    return Self.end(String(cString: text.assumingMemoryBound(to: CChar.self)), clc_get_long(easy, Int32(port)))
  }

  private static func end(_ address: String, _ port: Int) -> String? {
    guard !address.isEmpty, port > 0 else { return nil }
    return address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
  }

  /// Records the connection on which the request is about to be sent.
  func noteEnds(_ said: SocketWatch.Said) {
    guard record != nil, let own = said.own, let peer = said.peer,
      let local = Self.end(String(cString: own), Int(said.ownPort)),
      let remote = Self.end(String(cString: peer), Int(said.peerPort))
    else { return }
    record?.ends = (local, remote)
  }
}
