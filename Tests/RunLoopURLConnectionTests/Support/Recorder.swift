// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopURLConnection
import TestSupport

@testable import RunLoopHTTP

/// A delegate that records its calls.
final class Recorder: NSURLConnectionDataDelegate, @unchecked Sendable {
  // Sendable: its variables are guarded by locks, or set before the start.
  let log = Entries()
  let threads = Box<Set<Int32>>([])
  let body = Box<[UInt8]>([])
  let failure = Box<URLError?>(nil)
  let ended = Latch()
  let responded = Latch()

  var redirect: (URLRequest, URLResponse?) -> URLRequest? = { request, _ in request }
  var challenge: ((URLAuthenticationChallenge) -> Void)?
  var onData: () -> Void = {}
  var onResponse: () -> Void = {}
  var stream: () -> InputStream? = { nil }

  private func note(_ text: String) {
    threads.update { _ = $0.insert(RunLoop.callingThreadID) }
    log.write(text)
  }

  /// The body as text.
  var text: String { String(decoding: body.value, as: UTF8.self) }

  func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest? {
    note("redirect \((response as? HTTPURLResponse)?.statusCode ?? 0)")
    return redirect(request, response)
  }

  func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
    note("challenge \(challenge.previousFailureCount)")
    if let answer = self.challenge {
      answer(challenge)
    } else {
      challenge.sender?.performDefaultHandling(for: challenge)
    }
  }

  func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
    body.value = []
    onResponse()
    responded.open()
  }

  func connection(_ connection: NSURLConnection, didReceive data: Data) {
    note("data")
    body.update { $0 += Array(data) }
    onData()
  }

  func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
    note("stream")
    return stream()
  }

  func connection(
    _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
    totalBytesExpectedToWrite: Int
  ) {
    if totalBytesWritten == totalBytesExpectedToWrite { note("sent \(totalBytesWritten)") }
  }

  func connectionDidFinishLoading(_ connection: NSURLConnection) {
    note("finish")
    ended.open()
  }

  func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
    failure.value = error as? URLError
    note("fail \((error as? URLError)?.code.rawValue ?? 0)")
    ended.open()
  }

  /// Runs the calling thread's loop until the connection ends, or until a condition holds.
  func run(_ mode: RunLoop.Mode = .default, until isTrue: (() -> Bool)? = nil) {
    while !(isTrue?() ?? ended.isOpen) {
      guard RunLoop.current.run(mode: mode, for: .seconds(300), returnAfterSourceHandled: true) == .handledSource else {
        return log.write("nothing comes")
      }
    }
  }
}

/// A list of recorded entries.
final class Entries: Sendable {
  private let box = Box<[String]>([])

  var entries: [String] { box.value }
  var text: String { entries.joined(separator: " ") }
  func write(_ entry: String) { box.update { $0.append(entry) } }
  func count(of entry: String) -> Int { entries.count { $0 == entry } }
}

/// Loads a request on the calling thread's loop, in the default mode.
func load(_ request: URLRequest, _ change: (Recorder) -> Void = { _ in }) -> Recorder {
  let recorder = Recorder()
  change(recorder)
  _ = NSURLConnection(request: request, delegate: recorder)
  recorder.run()
  return recorder
}

extension LyingServer {
  func request(_ path: String = "/", method: String = "GET") -> URLRequest {
    guard let address = URL(string: url(path)) else { fatalError("\(path) is no path") }
    var request = URLRequest(url: address)
    request.httpMethod = method
    request.timeoutInterval = 600
    return request
  }
}

/// The names of a client's version 0 sources in the loop's description.
func networkSources(of loop: RunLoop, in mode: RunLoop.Mode = .default) -> [String] {
  var (names, current): ([String], Substring) = ([], "")
  for line in loop.debugDescription.split(separator: "\n") {
    if let name = line.firstRange(of: "{name = ").map({ line[$0.upperBound...].prefix { $0 != "," } }) {
      current = name
    }
    guard current == mode.rawValue, let range = line.firstRange(of: "callout = HTTP.") else { continue }
    names.append(String(line[range.upperBound...].prefix { $0 != "}" }))
  }
  return names.sorted()
}
