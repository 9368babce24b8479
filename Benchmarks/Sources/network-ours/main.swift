// SPDX-License-Identifier: Apache-2.0

// This package's client in the race: PORT PATH COUNT CONNECTIONS [own | http2 CERTIFICATE | http2-own CERTIFICATE |
// cancel | idle]
//
// own: on the main thread's loop. http2: CONNECTIONS requests at a time on one connection, to a server with this
// certificate. cancel: cancels requests without a response, and measures the time until the server has seen all of
// their connections close. idle: the program makes no request.

import Glibc
import RunLoopCore
import RunLoopHTTP
import Synchronization

func processorTime() -> (seconds: Double, peak: Int) {
  var usage = rusage()
  // RUSAGE_SELF, whose type does not match.
  getrusage(0, &usage)
  let (user, system) = (usage.ru_utime, usage.ru_stime)
  return (Double(user.tv_sec + system.tv_sec) + Double(user.tv_usec + system.tv_usec) / 1e6, usage.ru_maxrss)
}

func report(_ requests: Int, _ seconds: Double) {
  let used = processorTime()
  print(#"{"requests": \#(requests), "seconds": \#(seconds), "processor": \#(used.seconds), "peak": \#(used.peak)}"#)
}

func seconds(_ duration: Duration) -> Double {
  Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
}

/// Makes requests in chains, one for each connection.
final class Chains: Sendable {
  let client: HTTP.Client
  let request: HTTP.Request
  let output: HTTP.Output
  let loop: RunLoop
  private let started = Atomic<Int>(0)
  private let ended = Atomic<Int>(0)
  private let count: Int

  init(_ client: HTTP.Client, _ request: HTTP.Request, _ output: HTTP.Output, _ count: Int, _ loop: RunLoop) {
    (self.client, self.request, self.output, self.count, self.loop) = (client, request, output, count, loop)
  }

  func next() {
    guard started.wrappingAdd(1, ordering: .relaxed).newValue <= count else { return }
    let operation = client.operation(request, output: output, on: loop)
    operation.onCompletion(on: .immediately) { [self] result in
      if case .failure(let error) = result { fatalError("\(error)") }
      if ended.wrappingAdd(1, ordering: .relaxed).newValue == count { loop.perform { self.loop.stop() } }
      next()
    }
    operation.start()
  }
}

let arguments = CommandLine.arguments
guard arguments.count >= 5, let count = Int(arguments[3]), let connections = Int(arguments[4]) else { exit(2) }
let kind = arguments.count > 5 ? arguments[5] : ""
let base = "\(kind.hasPrefix("http2") ? "https" : "http")://127.0.0.1:\(arguments[1])"
var configuration = HTTP.Configuration()
configuration.connectionsPerHost = connections
let begin = ContinuousClock.now
// Created on demand, because a program that does nothing is measured too.
var loop: RunLoop { .current }

switch kind {
case "idle":
  // The driver inspects the process until it closes the input.
  print("ready")
  fflush(nil)
  _ = readLine()
case "cancel":
  let client = HTTP.Client(configuration)
  let operations = (0..<connections).map { _ in client.operation(HTTP.Request(base + "/hang"), on: loop) }
  for operation in operations { operation.start() }
  let asking = HTTP.Client(configuration)
  func number(_ path: String) async throws -> Int {
    try await Int(asking.data(for: HTTP.Request(base + path)).0.text ?? "") ?? 0
  }
  Task {
    while try await number("/hung") < connections {}
    let begin = ContinuousClock.now
    for operation in operations { operation.cancel() }
    while try await number("/gone") < connections {}
    report(connections, seconds(begin.duration(to: .now)))
    exit(0)
  }
  loop.runUntilStopped()
default:
  if kind.hasPrefix("http2") {
    guard arguments.count > 6 else { exit(2) }
    configuration.trust.roots = arguments[6]
    configuration.connectionsPerHost = 1
  }
  let client = HTTP.Client(configuration, on: kind.hasSuffix("own") ? loop : nil)
  let chains = Chains(client, HTTP.Request(base + arguments[2]), count == 1 ? .discard : .memory, count, loop)
  for _ in 0..<connections { chains.next() }
  loop.runUntilStopped()
  report(count, seconds(begin.duration(to: .now)))
}
exit(0)
