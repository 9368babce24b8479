// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking
import RunLoopCore
import RunLoopHTTP

extension NSURLConnection {
  /// Makes a request and blocks the calling thread, with its loop, until the response is complete.
  ///
  /// Redirects are followed, and credentials are taken from `URLCredentialStorage`. The body is limited to 64 MiB.
  /// Must not be called on the loader's thread.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - response: Set to the response.
  /// - Returns: The body.
  /// - Throws: Always `URLError`.
  public class func sendSynchronousRequest(
    _ request: URLRequest, returning response: UnsafeMutablePointer<URLResponse?>?
  ) throws -> Data {
    let done = ThreadSafe<CollectedAnswer?>(nil)
    let ended = DispatchSemaphore(value: 0)
    collect(request) { answer in
      done.value = answer
      ended.signal()
    }
    ended.wait()
    guard let answer = done.value else { throw URLError(.unknown) }
    response?.pointee = answer.response
    if let error = answer.error { throw error }
    return answer.data
  }

  /// Makes a request, and calls a block once on a queue with the response.
  ///
  /// Redirects are followed, and credentials are taken from `URLCredentialStorage`. The body is limited to 64 MiB.
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - queue: The queue that calls the block.
  ///   - handler: Called with the response and its body, or with a `URLError`.
  public class func sendAsynchronousRequest(
    _ request: URLRequest, queue: OperationQueue,
    completionHandler handler: @escaping @Sendable (URLResponse?, Data?, (any Error)?) -> Void
  ) {
    collect(request) { answer in
      queue.addOperation {
        if let error = answer.error { handler(nil, nil, error) } else { handler(answer.response, answer.data, nil) }
      }
    }
  }

  private class func collect(_ request: URLRequest, _ done: @escaping @Sendable (CollectedAnswer) -> Void) {
    guard var asked = HTTP.Request(request) else { return done(CollectedAnswer(error: URLError(.badURL))) }
    asked.maximumBodySize = 64 * 1024 * 1024
    let connection = HTTP.Connection(client, asked, delegate: AnswerCollector(request, done)) {
      $0.idleTimeout = request.idleTimeout
    }
    connection.setExecutor { $0() }
    connection.start()
  }
}

struct CollectedAnswer: @unchecked Sendable {
  // Sendable: not modified after it has been passed on.
  var response: HTTPURLResponse?
  var data = Data()
  var error: URLError?
}

/// Collects a response in memory.
private final class AnswerCollector: ConnectionBorder, @unchecked Sendable {
  // Sendable: only the delegate's calls use the variable, and the connection makes them one at a time.
  private var answer = CollectedAnswer()
  private let done: @Sendable (CollectedAnswer) -> Void

  init(_ request: URLRequest, _ done: @escaping @Sendable (CollectedAnswer) -> Void) {
    self.done = done
    super.init(request)
  }

  override func didReceive(_ response: HTTPURLResponse) { answer = CollectedAnswer(response: response) }
  override func didReceive(_ data: Data) { answer.data.append(data) }

  override func didEnd(_ error: URLError?) {
    answer.error = error
    done(answer)
  }
}

final class ThreadSafe<Value: Sendable>: @unchecked Sendable {
  // Sendable: the lock guards the value.
  private let lock = Lock()
  private var current: Value

  init(_ value: Value) { current = value }

  var value: Value {
    get { lock.withLock { current } }
    set {
      var replaced = newValue
      // The old value is released outside the lock.
      lock.withLock { swap(&current, &replaced) }
    }
  }
}
