// SPDX-License-Identifier: Apache-2.0

// Counts the requests that this package's client loses at a server that closes connections:
//
//     network-lost URL SECONDS AT-ONCE METHOD CERTIFICATE

import Glibc
import RunLoopCore
import RunLoopHTTP
import Synchronization

/// Makes requests in concurrent chains until a time has passed.
final class Chains: Sendable {
  let client: HTTP.Client
  let request: HTTP.Request
  let end: SuspendingClock.Instant
  let loop = RunLoop.current
  private let left: Atomic<Int>
  private let ended = Atomic<Int>(0)
  private let lost = Atomic<Int>(0)
  private let reason = Mutex("")

  init(_ client: HTTP.Client, _ request: HTTP.Request, _ seconds: Double, _ atOnce: Int) {
    (self.client, self.request, end) = (client, request, .now + .seconds(seconds))
    left = Atomic(atOnce)
  }

  func next() {
    let operation = client.operation(request, on: loop)
    operation.onCompletion(on: .immediately) { [self] result in
      ended.wrappingAdd(1, ordering: .relaxed)
      if case .failure(let error) = result {
        lost.wrappingAdd(1, ordering: .relaxed)
        reason.withLock { $0 = "\(error)" }
      }
      if .now < end { return next() }
      if left.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { loop.perform { self.loop.stop() } }
    }
    operation.start()
  }

  func report() {
    let text = reason.withLock { $0 }.replacing("\\", with: "/").replacing("\"", with: "'")
    print(
      #"{"requests": \#(ended.load(ordering: .relaxed)), "lost": \#(lost.load(ordering: .relaxed)), "#, terminator: "")
    print(#""reason": "\#(text)"}"#)
  }
}

let arguments = CommandLine.arguments
guard arguments.count >= 6, let seconds = Double(arguments[2]), let atOnce = Int(arguments[3]) else { exit(2) }
var configuration = HTTP.Configuration()
configuration.trust.roots = arguments[5]
configuration.version = arguments[1].hasPrefix("https") ? .automatic : .http1
configuration.connectionsPerHost = configuration.version == .http1 ? atOnce : 1
let method = HTTP.Method(arguments[4])
let body: HTTP.Content? = method == .post || method == .put ? .text("x") : nil
let chains = Chains(
  HTTP.Client(configuration), HTTP.Request(method, arguments[1], body: body), seconds, atOnce)
for _ in 0..<atOnce { chains.next() }
chains.loop.runUntilStopped()
chains.report()
exit(0)
