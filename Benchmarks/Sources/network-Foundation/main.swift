// SPDX-License-Identifier: Apache-2.0

// URLSession in the race: PORT PATH COUNT CONNECTIONS

import Foundation
import FoundationNetworking
import Glibc

let arguments = CommandLine.arguments
guard arguments.count == 5, let count = Int(arguments[3]), let connections = Int(arguments[4]),
  let url = URL(string: "http://127.0.0.1:\(arguments[1])\(arguments[2])")
else { exit(2) }

/// Counts completed requests, and discards their bodies.
final class Chains: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  // Sendable: once started, used only by the session's serial queue.
  let url: URL
  let count: Int
  var session: URLSession?
  var (started, ended) = (0, 0)
  let done = DispatchSemaphore(value: 0)

  init(_ url: URL, _ count: Int) { (self.url, self.count) = (url, count) }

  func next() {
    guard started < count else { return }
    started += 1
    guard count > 1 else { return session?.dataTask(with: url).resume() ?? () }
    session?.dataTask(with: url) { data, _, error in
      guard data != nil, error == nil else { fatalError("\(String(describing: error))") }
      self.hasEnded()
    }.resume()
  }

  private func hasEnded() {
    ended += 1
    if ended == count { done.signal() } else { next() }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    if count == 1 { hasEnded() }
  }
}

let configuration = URLSessionConfiguration.ephemeral
configuration.httpMaximumConnectionsPerHost = connections
configuration.timeoutIntervalForRequest = 600
let queue = OperationQueue()
queue.maxConcurrentOperationCount = 1
let chains = Chains(url, count)
let begin = ContinuousClock.now
chains.session = URLSession(configuration: configuration, delegate: chains, delegateQueue: queue)
queue.addOperation { for _ in 0..<connections { chains.next() } }
chains.done.wait()
let time = begin.duration(to: .now)
var usage = rusage()
// RUSAGE_SELF, whose type does not match.
getrusage(0, &usage)
let processor =
  Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
let seconds = Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
print(#"{"requests": \#(count), "seconds": \#(seconds), "processor": \#(processor), "peak": \#(usage.ru_maxrss)}"#)
exit(0)
