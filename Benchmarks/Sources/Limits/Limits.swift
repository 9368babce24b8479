// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The cost limits of one program's operations, from a file in `Benchmarks/Limits` for each toolchain.
///
/// Compilers differ in their allocations, so one toolchain's numbers do not apply to another. Not Sendable: used by
/// the main thread of a program that counts its children.
public final class Limits {
  private let program: String
  private let path: String
  private let writes: Bool
  /// The file's lines, as "program | operation | what | limit", and comments.
  private var lines: [Substring] = []
  private var limits: [String: Double] = [:]
  private var unused: Set<String> = []
  private var proposals: [String] = []

  /// Reads the limits for the toolchain of `swift`; exits the process if there is no such file.
  ///
  /// - Parameters:
  ///   - program: The name of the program, with which its lines begin.
  ///   - writes: Whether the measured values become the limits.
  public init(of program: String, writes: Bool) {
    self.program = program
    self.writes = writes
    let version = Self.toolchain()
    path = "\(Self.folder)/swift-\(version).txt"
    guard let text = read(fopen(path, "r"), close: fclose) else {
      guard writes else {
        fail(
          """
          there is no file of limits for Swift \(version): \(path)
          There are: \(Self.names().joined(separator: ", "))
          `\(program) --write-limits` makes it, or adds its own lines, of what it counts: compare them with another's.
          """)
      }
      lines = ["# What an operation built with Swift \(version) may cost: program | operation | what | limit."]
      return
    }
    lines = text.split(separator: "\n")
    for line in lines where line.hasPrefix("\(program) | ") {
      let parts = line.split(separator: "|").map(trimmed)
      guard parts.count == 4, let limit = Double(parts[3]) else { fail("\(path): not a limit: \(line)") }
      limits["\(parts[1]) | \(parts[2])"] = limit
    }
    unused = Set(limits.keys)
  }

  /// Returns the limit for one number of an operation, or the proposal if limits are written.
  ///
  /// - Parameter proposal: The limit to write.
  public func limit(_ operation: String, _ what: String, proposal: Double) -> Double {
    let key = "\(operation) | \(what)"
    unused.remove(key)
    if writes {
      proposals.append("\(program) | \(key) | \(short(proposal))")
      return proposal
    }
    guard let limit = limits[key] else {
      fail("\(path) has no line \"\(program) | \(key) | …\": write it, or let --write-limits do so")
    }
    return limit
  }

  /// Writes the limits, or exits the process if the file has lines for operations that were not counted.
  ///
  /// Must be called after all operations were counted.
  public func finish() {
    guard writes else {
      if !unused.isEmpty { fail("\(path): nothing counts \(unused.sorted())") }
      return
    }
    let others = lines.filter { !$0.hasPrefix("\(program) | ") }.map(String.init)
    let text = (others + proposals).joined(separator: "\n") + "\n"
    guard let file = fopen(path, "w"), fputs(text, file) >= 0, fclose(file) == 0 else {
      fail("\(path) cannot be written")
    }
    print("\(proposals.count) limits written to \(path)")
  }

  private func fail(_ what: String) -> Never {
    fflush(nil)
    let text = "\(program): \(what)\n"
    _ = Glibc.write(2, text, text.utf8.count)
    exit(1)
  }

  /// The path of `Benchmarks/Limits` in the checkout that the program was built from.
  private static var folder: String {
    #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/") + "/Limits"
  }

  /// Returns the first two components of the toolchain's version.
  private static func toolchain() -> String {
    let said = read(popen("swift --version 2>/dev/null", "r"), close: pclose) ?? ""
    let words = said.split(whereSeparator: \.isWhitespace)
    guard let index = words.firstIndex(of: "version"), index + 1 < words.count else { return "unknown" }
    return words[index + 1].split(whereSeparator: { $0 == "." || $0 == "-" }).prefix(2).joined(separator: ".")
  }

  private static func names() -> [String] {
    (read(popen("ls '\(folder)'", "r"), close: pclose) ?? "").split(separator: "\n").map(String.init)
  }
}

/// Formats a number, without a fraction of zero.
public func short(_ value: Double) -> String {
  value == value.rounded() ? "\(Int(value))" : "\(value)"
}

private func trimmed(_ text: Substring) -> String {
  text.split(separator: " ").joined(separator: " ")
}

/// Reads the rest of a file and closes it; returns nil if it was not opened.
private func read(_ file: UnsafeMutablePointer<FILE>?, close: (UnsafeMutablePointer<FILE>) -> Int32) -> String? {
  guard let file else { return nil }
  defer { _ = close(file) }
  var bytes: [UInt8] = []
  while case let byte = getc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
  return String(decoding: bytes, as: UTF8.self)
}
