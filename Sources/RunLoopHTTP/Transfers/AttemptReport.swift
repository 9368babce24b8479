// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

extension HTTP {
  /// What happened when a request was sent once: at first, or again as its ``reason`` says.
  public struct AttemptReport: Sendable, Hashable {
    /// The URL, without user, password, query and fragment.
    public internal(set) var url: String
    /// Why the request was sent again; nil for the first time.
    public internal(set) var reason: ResendReason?
    /// The status of the response; nil if none has arrived.
    public internal(set) var status: Status?
    /// Whether an existing connection was used.
    public internal(set) var isReused = false
    /// The client's address and port; nil if there was no connection, or it has none.
    public internal(set) var localAddress: String?
    /// The address and port of the server or the proxy; nil if there was no connection, or it has none.
    public internal(set) var remoteAddress: String?
    /// How many bytes were sent, as they are before encryption: the headers and the body.
    public internal(set) var bytesSent: Int64 = 0
    /// How many bytes were received, as they are after decryption and before decoding: the headers and the body.
    public internal(set) var bytesReceived: Int64 = 0
    /// How long its parts took; all zero if libcurl has sent the request again by itself afterwards.
    public internal(set) var timings = Timings()
  }

  /// How long the parts of a request took.
  ///
  /// All but ``nameLookup`` and ``waited`` are counted from when the last connection was asked for.
  public struct Timings: Sendable, Hashable {
    /// The time for the look-up of the name; zero if its addresses were known.
    public var nameLookup: Duration = .zero
    /// The time for which a connection was waited for; known in ``Response/attempts`` alone.
    public var waited: Duration = .zero
    /// The time until the connection was made; zero if an existing connection was used.
    public var connected: Duration = .zero
    /// The time until the encryption was agreed on; zero if there is none.
    public var secured: Duration = .zero
    /// The time until the request was about to be sent.
    public var sent: Duration = .zero
    /// The time until the first byte of the response.
    public var firstByte: Duration = .zero
    /// The time until the end of the response, or of the attempt; known in ``Response/attempts`` alone.
    public var total: Duration = .zero
  }
}

/// What is noted of an attempt for its report.
struct AttemptRecord {
  let started: Tick
  var begun: Tick?
  /// Why the request is being sent again.
  var reason: HTTP.ResendReason?
  var ends: (own: String, peer: String)?
  /// The size that the library reported before it sent the request again.
  var sizeBefore: Int64 = 0
}

extension Attempt {
  /// The attempt so far; the library has its handle.
  private func report(_ record: AttemptRecord) -> HTTP.AttemptReport {
    var report = HTTP.AttemptReport(url: exchange.address.safeText, reason: record.reason)
    report.isReused = isReused
    (report.localAddress, report.remoteAddress) = (record.ends?.own, record.ends?.peer)
    return report
  }

  /// Reports what is over: the library sends the request again by itself.
  func noteRepetition(_ reason: HTTP.ResendReason) {
    guard let record else { return }
    var report = report(record)
    report.bytesSent = requestSize - record.sizeBefore + sentBody
    transfer.attempts.append(report)
    self.record = AttemptRecord(
      started: loader.entered, begun: loader.entered, reason: reason, sizeBefore: requestSize)
  }

  /// How many bytes the library has written in all, over every time that it has sent the request; before 8.8 without
  /// the body.
  private var requestSize: Int64 { Int64(clc_get_long(easy, Int32(clc_info_request_size))) }

  /// How many bytes of the body the library wrote last, unless they are part of the size.
  private var sentBody: Int64 { CurlLibrary.countsBody ? 0 : clc_get_offset(easy, Int32(clc_info_sent_body)) }

  /// Reports the end of an attempt, before the library lets go of it.
  func noteEnd() {
    guard let record, transfer.attempt === self else { return }
    self.record = nil
    var report = report(record)
    if record.ends == nil {
      report.localAddress = end(clc_info_own_address, clc_info_own_port)
      report.remoteAddress = end(clc_info_peer_address, clc_info_peer_port)
    }
    report.status = transfer.progress.head?.status
    // After a body was written, the library keeps its length until it writes the next.
    report.bytesSent = requestSize - record.sizeBefore + min(sentBody, readCount)
    report.bytesReceived =
      Int64(clc_get_long(easy, Int32(clc_info_header_size))) + clc_get_offset(easy, Int32(clc_info_received_body))
    report.timings = timings
    let begun = record.begun ?? loader.loop.clockNow
    report.timings.waited = .nanoseconds(begun.nanoseconds - record.started.nanoseconds)
    report.timings.total = .microseconds(clc_get_offset(easy, Int32(clc_info_time_total)))
    transfer.attempts.append(report)
  }

  /// The end of a connection, as the library has it.
  private func end(_ address: some BinaryInteger, _ port: some BinaryInteger) -> String? {
    guard let text = clc_get_pointer(easy, Int32(address)) else { return nil }
    return Self.end(String(cString: text.assumingMemoryBound(to: CChar.self)), clc_get_long(easy, Int32(port)))
  }

  private static func end(_ address: String, _ port: Int) -> String? {
    guard !address.isEmpty, port > 0 else { return nil }
    return address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
  }

  /// Notes the connection on which the request is about to be sent.
  func noteEnds(_ said: SocketWatch.Said) {
    guard record != nil, let own = said.own, let peer = said.peer,
      let local = Self.end(String(cString: own), Int(said.ownPort)),
      let remote = Self.end(String(cString: peer), Int(said.peerPort))
    else { return }
    record?.ends = (local, remote)
  }
}
