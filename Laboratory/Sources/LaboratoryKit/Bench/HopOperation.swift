// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import RunLoopURLConnection

/// An operation that notes where it is started, called and ended.
final class HopOperation: Sendable {
  /// Where connections were made.
  let connects = Record()
  let ends = Tally()
  /// What the operation's own delegate functions were called with.
  let steps = Record()
  private let cancels = Record()
  private let body = Found("")
  private let operation = Found<NotedOperation?>(nil)
  private let observer = Found<Token?>(nil)

  /// An operation for an address.
  ///
  /// - Parameters:
  ///   - meeting: Where is announced what the operation does.
  ///   - place: The name of the calling thread.
  init(_ address: String, _ meeting: Meeting, _ place: @escaping @Sendable () -> String) {
    guard let url = URL(string: address) else { return }
    let made = NotedOperation(request: URLRequest(url: url))
    made.outputStream = NotedStream { [connects] in connects.write("\(place()), by a \(currentCallOut())") }
    made.note = { [steps, body] step, data in
      if let data { body.value += String(decoding: data, as: UTF8.self) }
      // The body may come in parts.
      if data == nil || body.value == LoopbackServer.body {
        steps.write("\(step): \(place()) by a \(currentCallOut())")
      }
      meeting.announce()
    }
    // It is posted by the thread that ends the operation, as its last act.
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

  /// What of the body has arrived.
  var received: String { body.value }

  func start() { operation.value?.start() }
  func pause() { operation.value?.pause() }
  func resume() { operation.value?.resume() }
  func cancel() { operation.value?.cancel() }

  /// How it ended.
  var text: String {
    let how = cancels.count == 0 ? "not cancelled" : cancels.lines.joined(separator: " ")
    return "\(how), connections \(connects.count), ends \(ends.count)"
  }

  private struct Token: @unchecked Sendable {
    // Sendable: it is only handed back.
    let token: any NSObjectProtocol

    init(_ token: any NSObjectProtocol) { self.token = token }
  }
}

/// An operation whose delegate functions are noted.
private final class NotedOperation: AFURLConnectionOperation, @unchecked Sendable {
  // Sendable: what it notes with is set before it is started.
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

/// Where an operation's body goes: it is opened by the thread that makes the connection.
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
