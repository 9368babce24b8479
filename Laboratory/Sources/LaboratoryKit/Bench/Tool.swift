// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The `runloop` tool, which experiments about the instruments run as users do.
///
/// It is built together with the laboratory, into the same directory.
enum Tool {
  /// The reason why the tool failed.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Runs a command with `--json`, and decodes the document that it prints.
  ///
  /// - Throws: A ``Failure`` if there is no such program, or with the command's error message.
  static func ask<Answer: Decodable>(_ arguments: String...) throws(Failure) -> Answer {
    let (status, printed) = try run(arguments + ["--json"])
    guard status == 0 else {
      throw Failure(description: "runloop \(arguments[0]) has ended with \(status): \(printed)")
    }
    do {
      return try JSONDecoder().decode(Answer.self, from: Data(printed.utf8))
    } catch {
      throw Failure(description: "runloop \(arguments[0]) has printed something else: \(printed)")
    }
  }

  private static func run(_ arguments: [String]) throws(Failure) -> (status: Int32, printed: String) {
    let path = try path()
    let process = Foundation.Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Foundation.Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = output
    do {
      try process.run()
    } catch {
      throw Failure(description: "\(path) cannot be run: \(error)")
    }
    let printed = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, printed)
  }

  private static func path() throws(Failure) -> String {
    guard let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
      throw Failure(
        description: "the laboratory's own program is not known, beside which the tool is: there is no /proc")
    }
    let path = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("runloop").path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw Failure(
        description: "there is no \(path), which the instruments are seen with: build it by "
          + "\"swift build --package-path Laboratory --product runloop\"")
    }
    return path
  }
}

/// A temporary directory for the tool's files.
struct TemporaryDirectory {
  let path: String

  init() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("laboratory-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    path = url.path
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
