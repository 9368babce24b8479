// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP.Client {
  /// Makes a request and returns the response with its complete body.
  ///
  /// The body is limited to 64 MiB unless the request or the configuration sets another limit. A status such as 404 is
  /// not treated as an error. Cancelling the task cancels the request.
  ///
  /// - Throws: Always ``HTTP/Error``.
  public func data(for request: HTTP.Request) async throws -> (HTTP.Body, HTTP.Response) {
    try await run(request) { MemoryReceiver($0) }
  }

  /// Runs a transfer to completion on behalf of a task.
  func run<Value: Sendable>(
    _ request: HTTP.Request,
    _ makeReceiver: (@escaping @Sendable (Result<Value, HTTP.Error>) -> Void) throws(HTTP.Error) -> any Receiver
  ) async throws -> Value {
    let canceller = Canceller()
    let outcome = TaskOutcome<Value>()
    let receiver = try makeReceiver { outcome.finish($0) }
    let transfer = Transfer(core, request, receiver)
    return try await withTaskCancellationHandler {
      if let error = core.begin(transfer) {
        throw error.of(url: WebAddress.safeText(of: request.url), bytesReceived: 0)
      }
      canceller.set(transfer)
      return try await outcome.value()
    } onCancel: {
      canceller.cancel()
    }
  }
}

/// Cancels a transfer when its task is cancelled, even if the transfer has not started yet.
final class Canceller: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var transfer: Transfer?
  private var isCancelled = false

  func set(_ transfer: Transfer) {
    lock.lock()
    let isLate = isCancelled
    self.transfer = transfer
    lock.unlock()
    if isLate { transfer.cancel() }
  }

  func cancel() {
    lock.lock()
    isCancelled = true
    let transfer = transfer
    lock.unlock()
    transfer?.cancel()
  }
}

/// A result that a single task awaits.
final class TaskOutcome<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var result: Result<Value, HTTP.Error>?
  private var waiting: CheckedContinuation<Value, any Swift.Error>?

  func finish(_ result: Result<Value, HTTP.Error>) {
    lock.lock()
    let waiting = waiting
    self.waiting = nil
    if waiting == nil { self.result = result }
    lock.unlock()
    waiting?.resume(with: result.mapError { $0 })
  }

  func value() async throws -> Value {
    defer { lock.noteResumption() }
    return try await withCheckedThrowingContinuation { continuation in
      lock.lock()
      let result = result
      if result == nil { waiting = continuation }
      lock.unlock()
      if let result { continuation.resume(with: result.mapError { $0 }) }
    }
  }
}

/// Collects a body in memory.
final class MemoryReceiver: Receiver, @unchecked Sendable {
  // Sendable: used only by the loader's thread.
  private var bytes: [UInt8] = []
  private let done: @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void

  init(_ done: @escaping @Sendable (Result<(HTTP.Body, HTTP.Response), HTTP.Error>) -> Void) { self.done = done }

  var canRestart: Bool { true }
  var closesAtOnce: Bool { true }
  var defaultLimit: Int64? { HTTP.Configuration.memoryLimit }

  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    guard offset == 0 else { return }
    bytes = []
    // The announced length is not trusted: the server may send less.
    if let length = response.contentLength, length > 0 { bytes.reserveCapacity(Int(min(length, 1 << 20))) }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool {
    self.bytes.append(contentsOf: bytes)
    return true
  }

  func finish(_ result: Result<HTTP.Response, HTTP.Error>) {
    let bytes = bytes
    self.bytes = []
    done(result.map { (HTTP.Body(bytes), $0) })
  }
}
