// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import RunLoopToolKit
import Testing

/// A process under inspection, with its own directory of records.
final class Victim {
  let directory: String
  private let ownsDirectory: Bool
  private let process = Process()
  private let output = Pipe()
  /// Closed when this process ends in any way, which ends the victim.
  private let input = Pipe()

  /// Starts a process, and waits until it reports that it is ready.
  init(
    _ arguments: [String], program name: String = "recorded-victim", level: String? = "record",
    directory: String? = nil, hasDirectory: Bool = true, waits: Bool = true
  ) throws {
    ownsDirectory = directory == nil
    self.directory = try directory ?? Victim.makeDirectory()
    process.executableURL = Victim.program(named: name)
    process.arguments = arguments
    var environment = ProcessInfo.processInfo.environment
    environment["RUNLOOP_DIR"] = hasDirectory ? self.directory : nil
    environment["RUNLOOP_INSTRUMENTS"] = level
    environment["SWIFT_BACKTRACE"] = "enable=no"
    environment["TEST_HOLDS_INPUT"] = "1"
    process.environment = environment
    process.standardInput = input
    // Programs started by other threads meanwhile do not inherit it.
    _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    process.standardOutput = output
    try process.start()
    if waits { _ = try line(containing: "ready") }
  }

  /// The location of the program.
  ///
  /// RUNLOOP_VICTIMS in the environment names another directory, for programs that were built differently.
  static func program(named name: String = "recorded-victim") -> URL {
    if name.hasPrefix("/") { return URL(fileURLWithPath: name) }
    if let other = ProcessInfo.processInfo.environment["RUNLOOP_VICTIMS"] {
      return URL(fileURLWithPath: other).appendingPathComponent(name)
    }
    let beside = Bundle.main.bundleURL.appendingPathComponent(name)
    if FileManager.default.isExecutableFile(atPath: beside.path) { return beside }
    return URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent(name)
  }

  /// Copies a program.
  ///
  /// Uses a separate process, because a child forked by another thread meanwhile would hold the copy open for
  /// writing, so it could not be executed.
  static func copy(program name: String = "recorded-victim", to path: String) throws {
    let copy = Process()
    copy.executableURL = URL(fileURLWithPath: "/bin/cp")
    copy.arguments = [program(named: name).path, path]
    try copy.start()
    copy.waitUntilExit()
    guard copy.terminationStatus == 0 else { throw VictimError(text: "\(name) cannot be copied to \(path)") }
  }

  deinit {
    kill()
    if ownsDirectory { try? FileManager.default.removeItem(atPath: directory) }
  }

  static func makeDirectory() throws -> String {
    let directory = "/dev/shm/runloop-tests-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    return directory
  }

  /// Examines the thirteen hanging loops, for twice as long after each attempt, until `isSeen` returns true.
  ///
  /// On a busy machine, a hang may be over before the first sample.
  static func hanging<Seen>(_ look: (Victim) throws -> Seen, until isSeen: (Seen) -> Bool) throws -> Seen {
    var seconds = 1.5
    while true {
      let seen = try look(Victim(["hangs", "\(seconds)"], program: "hang-victim", level: "off"))
      seconds *= 2
      if isSeen(seen) || seconds > 50 { return seen }
    }
  }

  /// Looks for twice as long after each attempt, until `isEnough` returns true.
  ///
  /// On a busy machine, a look may be too short.
  static func looking<Found>(
    from shortest: Double = 1, until isEnough: (Found) -> Bool, _ look: (_ seconds: Double) throws -> Found
  ) rethrows -> Found {
    var seconds = shortest
    while true {
      let found = try look(seconds)
      seconds *= 2
      if isEnough(found) || seconds > 60 { return found }
    }
  }

  var number: Int32 { process.processIdentifier }

  func line(containing word: String? = nil) throws -> String {
    var text = ""
    while true {
      let data = output.fileHandleForReading.readData(ofLength: 1)
      if data.isEmpty { throw VictimError(text: "the victim ended and said \"\(text)\"") }
      text += String(decoding: data, as: UTF8.self)
      guard text.hasSuffix("\n") else { continue }
      if word.map({ text.contains($0) }) ?? true { return text.trimmingCharacters(in: .newlines) }
      text = ""
    }
  }

  func kill() {
    guard process.isRunning else { return }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  func waitForExit() { process.waitUntilExit() }

  /// Has the same effect as the end of this process.
  func letGo() { try? input.fileHandleForWriting.close() }

  /// Waits for the end, and returns the signal that caused it.
  func signal() -> Int32? {
    process.waitUntilExit()
    return process.terminationReason == .uncaughtSignal ? process.terminationStatus : nil
  }

  var file: String? {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.first { $0.hasPrefix("\(number).") }.map { "\(directory)/\($0)/rings" }
  }
}

struct VictimError: Error, CustomStringConvertible {
  let text: String
  var description: String { text }
}

/// The output, error messages and status of a command.
struct Session {
  var status: Int32
  var output: String
  var complaints: [String]

  func json() throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
    guard let object = value as? [String: Any] else { throw VictimError(text: "no object: \(output)") }
    return object
  }
}

func runloop(_ arguments: String...) -> Session { runloop(arguments) }

func runloop(_ arguments: [String]) -> Session {
  final class Lines: @unchecked Sendable {
    // Sendable: used by one thread.
    var printed: [String] = []
    var complaints: [String] = []
  }
  let lines = Lines()
  let status = RunLoopCommand.status(
    of: arguments,
    output: Output(print: { lines.printed.append($0) }, complain: { lines.complaints.append($0) }))
  return Session(status: status, output: lines.printed.joined(separator: "\n"), complaints: lines.complaints)
}

/// The code location in a JSON value: its function, the last part of its file's path, and its line.
func place(_ value: Any?) -> (function: String, file: String, line: Int)? {
  guard let object = value as? [String: Any], let function = object["function"] as? String else { return nil }
  let file = (object["file"] as? String)?.split(separator: "/").last.map(String.init) ?? ""
  return (function, file, object["line"] as? Int ?? 0)
}
