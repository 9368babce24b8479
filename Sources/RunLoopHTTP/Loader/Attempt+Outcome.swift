// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// MARK: - The outcome of an exchange, and whether to send its request again. Called outside libcurl.
extension Attempt {
  /// Returns the error of the exchange, from libcurl's result and our own records; nil if the response is complete.
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

  /// Whether a response, possibly to another request, has arrived on this HTTP/2 connection.
  ///
  /// A plaintext connection is marked as HTTP/2 before that, so it does not count.
  private var isOnProvenHTTP2: Bool { exchange.address.isTLS && connection?.speaksHTTP2 == true }

  /// Returns the error if it is the proxy's fault.
  private func errorOfProxy(_ code: HTTP.Error.Code, _ detail: String) -> HTTP.Error? {
    guard let proxy = exchange.proxy else { return nil }
    let hasConnected = clc_get_offset(easy, Int32(clc_info_time_connected)) > 0
    return proxy.hasFailed(code, requests: requests, hasConnected: hasConnected)
      ? HTTP.Error(.proxyFailed, proxy.detail(detail)) : nil
  }

  /// Whether the handle is in the same state as one that has not made a request.
  ///
  /// After a retry, libcurl keeps the retry count for the next request, and after a failed call its error number. A
  /// reset would only clear the former. A libcurl without the prerequest callback does not reveal its retries.
  var leavesHandleAsNew: Bool { requests == 1 && clc_get_long(easy, Int32(clc_info_system_error)) == 0 }

  /// The TLS alert that ended the connection; nil if there was none or it is unknown.
  private var alert: CurlFailure.Alert? {
    guard exchange.address.isTLS, CurlLibrary.usesOpenSSL else { return nil }
    var isOwn: Int32 = 0
    // Alerts of a reused connection are recorded under the attempt that opened it.
    let opener = connection.map(\.opener) ?? 0
    // libcurl may have opened a new connection in place of a dead one.
    let number = clc_alert(opened.isEmpty && opener != 0 ? opener : number, &isOwn)
    return number < 0 ? nil : CurlFailure.Alert(number: Int(number), isOwn: isOwn != 0)
  }

  private var progress: CurlFailure.Progress {
    guard reader.hasBegun else { return .nothing }
    // After an interim response, nothing of the next response has arrived.
    guard reader.isComplete else { return reader.isWithinHead ? .head(byteCount: reader.byteCount) : .nothing }
    return reading.chunks.map { .chunks($0.state) } ?? .body
  }

  /// Whether the body ends only with the connection, and the server did not end it properly.
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

  /// Whether libcurl has used up its retries, and the request was unprocessed the last time, too.
  ///
  /// libcurl's last retry is not prevented: in 7.88, an abort there would reset the stream of another request with the
  /// same number as the previous stream. A failed connection leaves an error number or an alert. The message is only
  /// used to rule this case out.
  private func hasGivenUp(_ said: CurlFailure) -> Bool {
    requests > Self.mostRepetitions && wasWithoutFailure && said.systemError == 0 && said.alert == nil
      && [Int(clc_send_error), Int(clc_receive_error)].contains(Int(said.code))
      && said.text.hasPrefix("Connection died, tried")
  }

  /// The reason to send the request again in another attempt after a failure; nil if it must not be sent again.
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
