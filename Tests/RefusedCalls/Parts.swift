// SPDX-License-Identifier: Apache-2.0

import CallFilter
import Glibc
import RunLoopCore
import RunLoopMessages
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads
import RunLoopTransactions
import TestSupport

/// A result that a part did not produce.
struct Missing: Error {
  let what: String
}

/// Describes an error by its type and its system call, without numbers that differ between runs.
func describe(_ error: any Error) -> String {
  switch error {
  case let error as Missing: "lacks \(error.what)"
  case let error as SystemError: "\(error.call) \(error.number)"
  case ChildProcessError.system(_, let error): "ChildProcessError \(describe(error))"
  case SpawnError.system(_, let error): "SpawnError \(describe(error))"
  case FileChangeError.noQueue(let error): "FileChangeError.noQueue \(describe(error))"
  case FileChangeError.cannotWatch(_, let error): "FileChangeError.cannotWatch \(describe(error))"
  case MessagePortError.system(let error): "MessagePortError \(describe(error))"
  case MessagePortError.runLoop(let error): "MessagePortError \(describe(error))"
  case RunLoopError.cannotWatch(_, let error): "RunLoopError.cannotWatch \(describe(error))"
  case SignalError.system(_, let error): "SignalError \(describe(error))"
  case ThreadError.cannotStart(_, let number): "ThreadError.cannotStart \(number)"
  case RunLoopError.cannotBeHosted(let error): "RunLoopError.cannotBeHosted \(describe(error))"
  default: "\(type(of: error)) \(error)"
  }
}

func check(_ condition: Bool, _ what: String) throws {
  if !condition { throw Missing(what: what) }
}

struct Part: Sendable {
  let name: String
  let body: @Sendable () throws -> Void
}

enum Parts {
  static let all = [
    Part(name: "timers", body: timers), Part(name: "descriptors", body: descriptors), Part(name: "guest", body: guest),
    Part(name: "threads", body: threads), Part(name: "tasks", body: tasks), Part(name: "workers", body: workers),
    Part(name: "signals", body: signals), Part(name: "spawned", body: spawned), Part(name: "killed", body: killed),
    Part(name: "children", body: children), Part(name: "files", body: files), Part(name: "tree", body: tree),
    Part(name: "messages", body: messages), Part(name: "long messages", body: longMessages),
    Part(name: "sockets", body: sockets), Part(name: "unix sockets", body: unixSockets),
    Part(name: "datagrams", body: datagrams), Part(name: "streams", body: streams), Part(name: "hangs", body: hangs),
    Part(name: "metrics", body: metrics), Part(name: "main", body: mainLoop),
    Part(name: "foundation", body: foundation),
    Part(name: "http", body: http),
  ]

  /// The loop for a part: the main loop, as this is the program's only thread.
  static var loop: RunLoop { RunLoop.current }

  /// Runs the loop until a condition holds.
  static func run(until isOver: @escaping @Sendable () -> Bool) throws {
    let observer = RunLoop.Observer(activities: [.beforeSources, .beforeWaiting]) { [loop] _, _ in
      if isOver() { loop.stop() }
    }
    let keeper = loop.keepAlive()
    loop.add(observer, forMode: .default)
    defer {
      observer.invalidate()
      keeper.invalidate()
    }
    let result = loop.run(mode: .default, for: .seconds(300))
    try check(result == .stopped, "an end of the run, which was \(result)")
  }
}

/// A directory in memory or in /tmp, removed on deinitialization.
final class ScratchDirectory {
  let path: String

  init() throws {
    var template = Array("/tmp/refused-calls-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw SystemError(call: "mkdtemp", number: errno) }
    path = String(cString: made)
  }

  deinit { removeAll(path) }

  private func removeAll(_ path: String) {
    if let directory = opendir(path) {
      var names: [String] = []
      while let entry = readdir(directory) {
        names.append(
          withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
      }
      closedir(directory)
      for name in names where name != "." && name != ".." { removeAll("\(path)/\(name)") }
    }
    remove(path)
  }
}

// MARK: - Loops and threads

extension Parts {
  @Sendable static func timers() throws {
    let fired = Box(0)
    let timer = loop.schedule(in: .milliseconds(1), repeating: .milliseconds(1)) { _ in fired.value += 1 }
    // The kernel may reject the slack of a thread's sleeps.
    loop.timerSlack = .microseconds(20)
    let thread = Thread { [loop] in loop.perform { fired.value += 100 } }
    try thread.tryStart()
    try run { fired.value >= 103 }
    try thread.join()
    timer.invalidate()
    try check(loop.run(mode: .default, for: .milliseconds(3)) != .stopped, "an end in time")
    loop.timerSlack = nil
  }

  @Sendable static func descriptors() throws {
    let pipe = try RawPipe()
    let count = Box(0)
    let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
      pipe.read()
      count.value += 1
    }
    try loop.add(source, forMode: .default)
    // The loop wakes for its timers while it waits for descriptors, whatever the resolution of its wait.
    let timer = loop.schedule(in: .microseconds(300), repeating: .microseconds(300)) { _ in pipe.write() }
    try run { count.value >= 3 }
    timer.invalidate()
    source.invalidate()
  }

  @Sendable static func guest() throws {
    let fired = Box(false)
    let guest = try RunLoop.Guest(signalsDeadlines: true)
    loop.after(.milliseconds(2)) { _ in fired.value = true }
    _ = guest.service()
    while !fired.value {
      var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, 300_000) > 0 else { throw Missing(what: "a signal of the guest") }
      _ = guest.service()
    }
    guest.invalidate()
  }

  @Sendable static func threads() throws {
    let worker = try ResidentThread(name: "worker")
    let number = try worker.performAndWait { 7 }
    try check(number == 7, "a result")
    try check(Thread.current.name != "worker", "another name")
    worker.stop()
    try worker.join()
  }

  @Sendable static func tasks() throws {
    #if compiler(<6.3)
      try check(call_filter_try_timer() == 0, "libdispatch's timers")
    #endif
    let worker = try ResidentThread(name: "tasks")
    let done = Flag()
    Task(executorPreference: worker) {
      try? await Task.sleep(for: .milliseconds(2))
      done.set()
    }
    done.wait()
    worker.stop()
    try worker.join()
  }

  @Sendable static func workers() throws {
    let sum = Box(0)
    let transaction = AsyncTransaction()
    for number in 1...4 {
      transaction.add { _ in
        number
      } completion: {
        if case .success(let number) = $0 { sum.value += number }
      }
    }
    transaction.commit()
    try run { sum.value == 10 }
    try check(sum.value == 10, "the sum, which is \(sum.value)")
  }
}
