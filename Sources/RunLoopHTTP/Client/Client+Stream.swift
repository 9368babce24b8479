// SPDX-License-Identifier: Apache-2.0

extension HTTP.Client {
  /// Makes a request and returns when the head of its answer has arrived; the body follows as the program takes it.
  ///
  /// If the task is cancelled before, the request is cancelled. Bytes that were taken cannot be taken back: such a
  /// request is not made again after its body has begun, unless the server goes on where it ended.
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
