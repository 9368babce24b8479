// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopTesting
import RunLoopThreads

@MainActor func timer() async throws -> String {
  let start = SuspendingClock.now
  var ticks: [String] = []
  for await _ in Timer.ticks(every: .milliseconds(100), on: .main) {
    ticks.append("\((SuspendingClock.now - start) / .milliseconds(1), digits: 0) ms")
    if ticks.count == 5 { return "ticks after " + ticks.joined(separator: ", ") }
  }
  throw Unexpected("the ticks ended after \(ticks)")
}

@MainActor func tomorrow() async throws -> String {
  let start = SuspendingClock.now
  let count = try await VirtualTime.onResidentThread { time in
    let reminder = RunLoop.current.schedule(in: .seconds(60 * 60), repeating: .seconds(60 * 60)) { _ in
      time.log.write("reminder")
    }
    try await RunLoop.current.sleep(for: .seconds(24 * 60 * 60))
    reminder.invalidate()
    return time.log.count(of: "reminder")
  }
  guard count >= 23 else { throw Unexpected("\(count) reminders in a day") }
  return "a day with \(count) hourly reminders took \((SuspendingClock.now - start) / .milliseconds(1), digits: 0) ms"
}

@MainActor func hang() async throws -> String {
  let worker = try ResidentThread(name: "worker")
  defer { worker.stop() }
  let (reports, continuation) = AsyncStream<HangReport>.makeStream()
  let watch = HangWatch(.init(threshold: .milliseconds(200), loops: [worker.runLoop], level: .record)) { report in
    continuation.yield(report)
  }
  guard watch.isWatching else { throw Unexpected("no thread to watch with") }
  try worker.perform { usleep(600_000) }
  // The first report is made while the call-out lasts, the second when it has returned.
  for await report in reports {
    guard let end = report.end else { continue }
    let time = Duration.nanoseconds(end - report.begin) / .seconds(1)
    let call = report.blockedIn.map { "blocked in \($0.call)" } ?? report.processor.rawValue
    let kind = report.kind ?? "call-out"
    return "the thread \"\(report.threadName)\" hung for \(time, digits: 1) s in a \(kind), \(call)"
  }
  throw Unexpected("no report")
}

@MainActor func whyAlive() async throws -> String {
  // The place where an item was added is recorded too, for the tool `runloop why-alive`.
  let level = Instruments.hold(.watch)
  defer { level.release() }
  let importer = try ResidentThread(name: "importer")
  defer { importer.stop() }
  let loop = importer.runLoop
  try await importer.run {
    loop.schedule(in: .seconds(3600), repeating: .seconds(3600)) { _ in }
    try loop.add(ListeningSocket(at: .loopback(port: 0)) { _, _ in }, forMode: .default)
    try loop.add(SignalSource(signal: SIGHUP) { _, _ in }, forMode: .default)
  }
  let reasons = Instruments.reasons(keeping: loop)
  guard reasons.count >= 4 else { throw Unexpected("\(reasons)") }
  return reasons.map { "\($0.kind.rawValue): \($0.detail)" }.sorted().joined(separator: "\n")
}

extension String.StringInterpolation {
  /// Appends a number with `digits` digits after the decimal point.
  mutating func appendInterpolation(_ value: Double, digits: Int) {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let rounded = (value * scale).rounded() / scale
    appendLiteral(digits == 0 ? "\(Int(rounded))" : "\(rounded)")
  }
}
