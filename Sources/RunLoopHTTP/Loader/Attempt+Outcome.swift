// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// How an exchange has ended, and whether another attempt sends its request again; outside of the library.
extension Attempt {
  /// The error with which it has ended, by what the library says and what we know; nil if its response is complete.
  func outcome(_ code: Int32) -> HTTP.Error? {
    if let failure { return failure }
    if wasFlooded { return Self.flooded }
    if code == 0 {
      guard reader.isComplete else {
        return HTTP.Error(.connectionLost, "the connection ended within the head of the answer")
      }
      guard !wasCut else {
        return HTTP.Error(.connectionLost, "the encrypted connection was cut, and the body has no length")
      }
      guard connection == nil || loader.lookedAt !== connection else {
        return HTTP.Error(.connectionLost, "the connection ended within the body")
      }
      return nil
    }
    if let failure = evaluation?.failure { return failure }
    let said = CurlFailure(
      code: code, text: String(cString: handle.errorText),
      systemError: Int32(clc_get_long(easy, Int32(clc_info_system_error))),
      connectStatus: clc_get_long(easy, Int32(clc_info_connect_code)), usesProxy: exchange.proxyOfHTTP != nil,
      wasConnected: requests > 0 || reader.hasBegun, isBeforeAnswer: !reader.hasBegun,
      wantedCertificate: clc_wanted_certificate(number) != 0, wasKept: isOnProvenHTTP2,
      peerHasEnded: connection?.peerHasEnded ?? false, alert: alert,
      isSecuring: exchange.address.isTLS && !opened.isEmpty && requests == 0 && !reader.hasBegun, progress: progress)
    resend = reasonToResend(after: said)
    let detail = socketFailure.map { "\(said.detail); \($0)" } ?? said.detail
    return errorOfProxy(said.errorCode, detail) ?? HTTP.Error(said.errorCode, detail)
  }

  /// Whether a response has arrived on its connection of HTTP/2, be it that of another.
  ///
  /// A plain one counts as one of HTTP/2 before that.
  private var isOnProvenHTTP2: Bool { exchange.address.isTLS && connection?.speaksHTTP2 == true }

  /// The error, if it is a proxy's.
  private func errorOfProxy(_ code: HTTP.Error.Code, _ detail: String) -> HTTP.Error? {
    guard let proxy = exchange.proxy else { return nil }
    let hasConnected = clc_get_offset(easy, Int32(clc_info_time_connected)) > 0
    return proxy.hasFailed(code, requests: requests, hasConnected: hasConnected)
      ? HTTP.Error(.proxyFailed, proxy.detail(detail)) : nil
  }

  /// Whether the library's handle is in the state of one that has made no request.
  ///
  /// After a retry it keeps their number, also for the next request, and after a failed call its error number. A reset
  /// would set back the first only. A library that does not ask before a request does not show its retries.
  var leavesHandleAsNew: Bool { requests == 1 && clc_get_long(easy, Int32(clc_info_system_error)) == 0 }

  /// The alert that has ended its connection; nil if there was none, or it is not known.
  private var alert: CurlFailure.Alert? {
    guard exchange.address.isTLS, CurlLibrary.usesOpenSSL else { return nil }
    var isOwn: Int32 = 0
    // Those of a kept connection are noted under the attempt that has made it.
    let opener = connection.map(\.opener) ?? 0
    // Unless libcurl has opened another in the place of a kept one that was dead.
    let number = clc_alert(opened.isEmpty && opener != 0 ? opener : number, &isOwn)
    return number < 0 ? nil : CurlFailure.Alert(number: Int(number), isOwn: isOwn != 0)
  }

  private var progress: CurlFailure.Progress {
    guard reader.hasBegun else { return .nothing }
    // After an interim response nothing of the next has arrived.
    guard reader.isComplete else { return reader.isWithinHead ? .head(byteCount: reader.byteCount) : .nothing }
    return reading.chunks.map { .chunks($0.state) } ?? .body
  }

  /// Whether the end of the connection is the only end of the body, and it is not the server's.
  private var wasCut: Bool {
    guard reader.endsWithConnection, exchange.address.isTLS, CurlLibrary.usesOpenSSL, clc_notes_ends() != 0,
      let connection, connection.opener != 0
    else { return false }
    return exchange.method != .head && clc_was_ended(connection.opener) == 0
  }

  var timings: HTTP.Timings {
    func time(_ info: some BinaryInteger) -> Duration { .microseconds(clc_get_offset(easy, Int32(info))) }
    var timings = HTTP.Timings()
    timings.nameLookup = .nanoseconds(transfer.progress.lookupTime)
    timings.connected = time(clc_info_time_connected)
    timings.secured = time(clc_info_time_shaken)
    timings.sent = time(clc_info_time_sent)
    timings.firstByte = time(clc_info_time_first_byte)
    return timings
  }

  /// Whether the library has sent the request as often as it does, and it was unprocessed the last time, too.
  ///
  /// It is not kept from sending it the last time: with 7.88, an abort there would reset the stream of another request
  /// that has the number of the one before. A connection that fails leaves an error number or an alert. The library's
  /// text can only forbid this.
  private func hasGivenUp(_ said: CurlFailure) -> Bool {
    requests > Self.mostRepetitions && wasWithoutFailure && said.systemError == 0 && said.alert == nil
      && [Int(clc_send_error), Int(clc_receive_error)].contains(Int(said.code))
      && said.text.hasPrefix("Connection died, tried")
  }

  /// Why another attempt sends the request again after a failure; nil if none does.
  private func reasonToResend(after said: CurlFailure) -> HTTP.ResendReason? {
    guard exchange.allowsResending, requests > 0, !reader.hasBegun else { return nil }
    if said.isEndOfKept, said.text.isEmpty, said.systemError == 0, hasWrittenNothing { return .unprocessed }
    if hasGivenUp(said) { return .unprocessed }
    if isReused, connection?.speaksHTTP1 == true, said.errorCode == .connectionLost, isUnprocessed {
      return .unprocessed
    }
    guard exchange.method.isIdempotent, !exchange.isFresh else { return nil }
    if said.isEndOfSession { return .connectionEnded }
    return isReused && said.errorCode == .connectionLost ? .connectionEnded : nil
  }
}
