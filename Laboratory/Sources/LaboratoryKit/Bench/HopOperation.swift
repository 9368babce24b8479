// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import RunLoopURLConnection

/// An operation that records the threads on which it is started, called and ended.
final class HopOperation: Sendable {
  /// The places where connections were created.
  let connects = Record()
  let ends = Tally()
  /// The calls of the operation's own delegate methods.
  let steps = Record()
  private let cancels = Record()
  private let body = Found("")
  private let operation = Found<NotedOperation?>(nil)
  private let observer = Found<Token?>(nil)

  /// Creates an operation for a URL.
  ///
  /// - Parameters:
  ///   - meeting: Announces the operation's steps.
  ///   - place: Returns the name of the calling thread.
  init(_ address: String, _ meeting: Meeting, _ place: @escaping @Sendable () -> String) {
    guard let url = URL(string: address) else { return }
    let made = NotedOperation(request: URLRequest(url: url))
    made.outputStream = NotedStream { [connects] in connects.write("\(place()), by a \(currentCallOut())") }
    made.note = { [steps, body] step, data in
      if let data { body.value += String(decoding: data, as: UTF8.self) }
      // The body may arrive in parts.
      if data == nil || body.value == LoopbackServer.body {
        steps.write("\(step): \(place()) by a \(currentCallOut())")
      }
      meeting.announce()
    }
    // The thread that ends the operation posts it as its last action.
    observer.value = Token(
      NotificationCenter.default.addObserver(
        forName: .AFNetworkingOperationDidFinish, object: made, queue: nil
      ) { [weak made, cancels, ends] _ in
        if (made?.error as? URLError)?.code == .cancelled {
          cancels.write("cancelled on \(place()) by a \(currentCallOut())")
        }
        ends.add()
        meeting.announce()
      })
    operation.value = made
  }

  deinit { if let token = observer.value { NotificationCenter.default.removeObserver(token.token) } }

  /// The part of the body that has arrived.
  var received: String { body.value }

  func start() { operation.value?.start() }
  func pause() { operation.value?.pause() }
  func resume() { operation.value?.resume() }
  func cancel() { operation.value?.cancel() }

  /// A description of the operation's end.
  var text: String {
    let how = cancels.count == 0 ? "not cancelled" : cancels.lines.joined(separator: " ")
    return "\(how), connections \(connects.count), ends \(ends.count)"
  }

  private struct Token: @unchecked Sendable {
    // Sendable: it is only passed back to the center.
    let token: any NSObjectProtocol

    init(_ token: any NSObjectProtocol) { self.token = token }
  }
}

/// An operation that records its delegate calls.
private final class NotedOperation: AFURLConnectionOperation, @unchecked Sendable {
  // Sendable: `note` is set before the start.
  var note: @Sendable (_ step: String, _ data: Data?) -> Void = { _, _ in }

  override func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    note("response", nil)
    super.connection(connection, didReceive: response)
  }

  override func connection(_ connection: NSURLConnection, didReceive data: Data) {
    note("body", data)
    super.connection(connection, didReceive: data)
  }

  override func connectionDidFinishLoading(_ connection: NSURLConnection) {
    note("end", nil)
    super.connectionDidFinishLoading(connection)
  }
}

/// A stream for an operation's body, which the thread that makes the connection opens.
private final class NotedStream: OutputStream {
  private let opened: @Sendable () -> Void

  init(_ opened: @escaping @Sendable () -> Void) {
    self.opened = opened
    super.init(toMemory: ())
  }

  required init(toMemory: ()) {
    opened = {}
    super.init(toMemory: ())
  }

  override func open() { opened() }
  override func close() {}
  override func write(_ buffer: UnsafePointer<UInt8>, maxLength length: Int) -> Int { length }
}
