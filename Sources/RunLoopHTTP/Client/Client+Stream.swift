// SPDX-License-Identifier: Apache-2.0

extension HTTP.Client {
  /// Makes a request and returns once the response's headers have arrived; the body is received as the program reads
  /// it.
  ///
  /// If the task is cancelled before then, the request is cancelled. Bytes that have been read cannot be taken back,
  /// so after the body has begun the request is only retried if the server can continue where it left off.
  ///
  /// - Throws: Always ``HTTP/Error``.
  public func stream(for request: HTTP.Request) async throws -> (HTTP.BodySequence, HTTP.Response) {
    let outcome = TaskOutcome<HTTP.Response>()
    let canceller = Canceller()
    let buffer = BodyBuffer { outcome.finish($0) }
    let transfer = Transfer(core, request, buffer)
    let owner = BodyOwner(buffer, transfer)
    return try await withTaskCancellationHandler {
      if let error = core.begin(transfer) {
        let error = error.of(url: WebAddress.safeText(of: request.url), bytesReceived: 0)
        buffer.finish(.failure(error))
        throw error
      }
      canceller.set(transfer)
      return (HTTP.BodySequence(owner: owner), try await outcome.value())
    } onCancel: {
      canceller.cancel()
    }
  }
}
