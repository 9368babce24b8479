// SPDX-License-Identifier: Apache-2.0

// Makes the requests that a document describes, and prints the results as its last line.
//
//     swift run --package-path Examples http-scenario FILE
//
// The document is JSON: {"client": {…}, "steps": […]}; its parts are in Document.swift. The last line is {"results":
// {ID: {…}}, "after": {"fdsBefore": n, "fds": n}}, or {"unsupported": "why"}.

import Foundation
import Glibc
import RunLoopHTTP
import RunLoopThreads

func descriptorCount() -> Int {
  guard let directory = opendir("/proc/self/fd") else {
    // No descriptor is left to open the directory.
    return (0..<Int32(4096)).count { fcntl($0, F_GETFD) >= 0 }
  }
  defer { closedir(directory) }
  var count = 0
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if let number = Int32(name), number != dirfd(directory) { count += 1 }
  }
  return count
}

func digits(_ unit: UInt16) -> String {
  let text = String(unit, radix: 16)
  return String(repeating: "0", count: 4 - text.count) + text
}

func print(_ object: [String: Any]) {
  do {
    let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
    // ASCII only: some readers treat other characters as line ends.
    Swift.print(
      String(decoding: data, as: UTF8.self).unicodeScalars.map { scalar in
        scalar.isASCII ? String(scalar) : String(scalar).utf16.map { "\\u" + digits($0) }.joined()
      }.joined())
  } catch {
    Swift.print("{\"unsupported\": \"the results are no JSON\"}")
  }
  fflush(nil)
}

/// Waits until a stopped client has closed everything.
func waitForEnd(of client: HTTP.Client, _ runner: Runner) async throws {
  guard runner.settings.descriptors != nil else {
    _ = await client.finished()
    return
  }
  // libdispatch reports the end of the client's thread.
  while client.state != .finished { try await runner.sleep(for: .milliseconds(1)) }
  // The thread closes its loop's descriptors shortly afterwards.
  try await runner.sleep(for: .milliseconds(20))
}

func run(_ document: Document, on thread: ResidentThread) async throws -> [String: Any] {
  let settings = document.client ?? ClientSettings()
  if let limit = settings.descriptors {
    guard let most = rlim_t(exactly: limit) else { throw Unsupported(reason: "a limit of \(limit) descriptors") }
    var limits = rlimit(rlim_cur: most, rlim_max: most)
    guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else {
      throw Unsupported(reason: "a limit of \(limit) descriptors")
    }
  }
  let directory = NSTemporaryDirectory() + "http-scenario-\(getpid())"
  try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: directory) }

  let before = descriptorCount()
  let runner = Runner(settings: settings, directory: directory, thread: thread)
  var client = try runner.makeClient()
  var running: [Task<Void, Never>] = []
  var isFirst = true
  for step in document.steps {
    if settings.each == true, step.requests != nil, !isFirst {
      client.stop(.afterPendingWork)
      for task in running { await task.value }
      running = []
      try await waitForEnd(of: client, runner)
      client = try runner.makeClient()
    }
    if let requests = step.requests {
      isFirst = false
      let tasks = try requests.map { try runner.start($0, client) }
      if step.wait ?? true { for task in tasks { await task.value } } else { running += tasks }
    }
    if let seconds = step.sleep { try await runner.sleep(for: .ofDocument(seconds)) }
    switch step.stop {
    case nil: break
    case "cancel"?: client.stop(.immediately)
    case "drain"?: client.stop(.afterPendingWork)
    case let stop?: throw Unsupported(reason: "the stop \"\(stop)\"")
    }
  }
  for task in running { await task.value }
  client.stop(.afterPendingWork)
  try await waitForEnd(of: client, runner)
  return ["results": runner.results.all, "after": ["fdsBefore": before, "fds": descriptorCount()]]
}

guard CommandLine.arguments.count == 2 else {
  FileHandle.standardError.write(Data("usage: http-scenario FILE\n".utf8))
  exit(2)
}
/// Runs the document of a file, and exits the process.
///
/// All tasks run on one thread of ours: libdispatch's threads occasionally open a file, and terminate the process if
/// no descriptor is available.
func start(_ path: String) throws {
  let thread = try ResidentThread(name: "http-scenario")
  Task(executorPreference: thread) {
    await runToEnd(path, on: thread)
    exit(0)
  }
}

func runToEnd(_ path: String, on thread: ResidentThread) async {
  do {
    let document = try JSONDecoder().decode(Document.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
    print(try await run(document, on: thread))
  } catch let error as Unsupported {
    print(["unsupported": error.reason])
  } catch {
    print(["unsupported": "\(error)"])
  }
}

signal(SIGPIPE, SIG_IGN)
do {
  try start(CommandLine.arguments[1])
} catch {
  print(["unsupported": "\(error)"])
  exit(0)
}
while true { pause() }
