// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import CRunLoopToolKit
import RunLoopLibC
import RunLoopCore

/// Symbolizes addresses with the toolchain's `llvm-symbolizer`, or another one in the path.
///
/// The input is untrusted. The program runs with the rights of the input's owner, without an environment or a
/// terminal, and with limits on memory and time. It is ended with all its descendants if it takes too long or the
/// calling thread ends. Must be used on a single thread.
package final class ExternalSymbolizer: FrameSource {
  private let program: String?
  private let rights: UserRights
  private let limit: Int64
  /// The symbol files of programs and libraries that are stripped or have been replaced.
  private var symbolFiles: [String: String] = [:]
  /// The directory in which to look for symbol files, or nil.
  @TaskLocal static var directory: String?
  /// The remaining time for all requests, and whether one of them timed out.
  private var budget: Int64
  private var isGivenUp = false

  private static let second: Int64 = 1_000_000_000
  /// The maximum size of a response, and of the program's address space.
  private static let mostBytes = 64 << 20
  private static let mostMemory: UInt64 = 8 << 30

  /// - Parameters:
  ///   - user: The owner of the programs to symbolize. The default is `nil`, which means the user of this process.
  ///   - seconds: The time limit of a request. The limit of all requests together is five times as long. The default
  ///     is 60.
  package init(of user: UInt32? = nil, seconds: Int = 60) {
    program = ExternalSymbolizer.find()
    rights = UserRights(of: user ?? geteuid())
    limit = Int64(seconds) * Self.second
    budget = 5 * limit
  }

  /// Whether a symbolizer was found.
  package var isThere: Bool { program != nil }

  package func isKept(_ path: String, _ identity: [UInt8]) -> Bool {
    let isKept = try? rights.openingFiles { () throws(RecordError) -> Bool in
      symbolFiles[path] = ExternalSymbolizer.symbolFile(of: path, identity)
      return symbolFiles[path] != nil || BuildID.isKept(path, identity) && DebugLink.isHarmless(path)
    }
    return isKept ?? false
  }

  /// Returns the file in the directory that has a usual name and belongs to the same build, or nil.
  private static func symbolFile(of path: String, _ identity: [UInt8]) -> String? {
    guard let directory, let identity = identity.isEmpty ? BuildID.read(path) : identity, identity.count > 1,
      let name = (DeletedFiles.path(of: path) ?? path).split(separator: "/").last
    else { return nil }
    let digits = identity.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    let byBuild = "\(directory)/.build-id/\(digits[0])/\(digits.dropFirst().joined()).debug"
    return ["\(directory)/\(name)", "\(directory)/\(name).debug", byBuild].first {
      BuildID.isKept($0, identity) && DebugLink.isHarmless($0)
    }
  }

  package func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]] {
    var found: [[CodeFrame]] = []
    // The length of an argument list is limited.
    for start in stride(from: 0, to: addresses.count, by: 1000) {
      let part = addresses[start..<min(start + 1000, addresses.count)]
      let answers = ask(symbolFiles[path] ?? path, part.map { "0x\(String($0, radix: 16))" })
      guard answers.count == part.count else { return [] }
      found += answers
    }
    return found
  }

  package func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame] {
    // The symbol comes from the program's file, and must not be mistaken for an option.
    let begins = symbol.first.map { $0.isLetter || "_$".contains($0) } ?? false
    let isName = begins && symbol.utf8.allSatisfy { $0 > 32 && $0 != 127 }
    return isName ? ask(symbolFiles[path] ?? path, [symbol]).first ?? [] : []
  }

  /// Asks for the functions of a file at addresses or with symbols.
  private func ask(_ path: String, _ queries: [String]) -> [[CodeFrame]] {
    guard let program, !isGivenUp else { return [] }
    // Without its caller's capabilities, the symbolizer may not follow a link to another process's file.
    let isLink = path.hasPrefix("/proc/")
    let input = isLink ? (try? rights.openingFiles { open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) }) ?? -1 : -1
    defer { if input >= 0 { close(input) } }
    let file = input > 0 ? "/proc/self/fd/0" : path
    let options = ["--no-demangle", "--functions=linkage", "--output-style=LLVM", "--obj=\(file)"]
    guard let text = run(program, options + queries, input: input) else { return [] }
    var answers: [[CodeFrame]] = []
    var frames: [CodeFrame] = []
    var symbol: String?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.isEmpty {
        if !frames.isEmpty { answers.append(frames.filter { $0.symbol != "??" }) }
        frames = []
      } else if let name = symbol {
        frames.append(frame(name, line))
        symbol = nil
      } else {
        symbol = String(line)
      }
    }
    return answers
  }

  private func frame(_ symbol: String, _ place: Substring) -> CodeFrame {
    // The path may contain colons; the line and column do not.
    let parts = place.split(separator: ":", omittingEmptySubsequences: false)
    let line = parts.count >= 3 ? Int(parts[parts.count - 2]) ?? 0 : 0
    let file = parts.dropLast(2).joined(separator: ":")
    let isKnown = !file.isEmpty && !file.hasPrefix("??") && !file.contains("<compiler-generated>")
    return CodeFrame(symbol: symbol, file: isKnown ? file : nil, line: isKnown ? line : 0)
  }

  private static func find() -> String? {
    let directories = Environment.programDirectories
    for directory in directories {
      // The toolchain may be reached through a link.
      guard let resolved = realpath("\(directory)/swift", nil) else { continue }
      defer { free(resolved) }
      let folder = String(cString: resolved).split(separator: "/", omittingEmptySubsequences: false).dropLast()
      let candidate = folder.joined(separator: "/") + "/llvm-symbolizer"
      if access(candidate, X_OK) == 0 { return candidate }
    }
    return directories.map { "\($0)/llvm-symbolizer" }.first { access($0, X_OK) == 0 }
  }

  /// Runs a program and returns its output, or nil if it cannot be run, fails, writes too much or takes too long.
  private func run(_ program: String, _ arguments: [String], input: Int32) -> String? {
    guard let texts = try? ([program] + arguments).map({ try CText($0) }) else { return nil }
    var words: [UnsafePointer<CChar>?] = texts.map { UnsafePointer($0.copy()) }
    words.append(nil)
    defer { for word in words { free(UnsafeMutablePointer(mutating: word)) } }
    let begin = crl_monotonic_nanoseconds()
    let end = begin + min(limit, budget)
    var limits = crlt_limits(memory: Self.mostMemory, seconds: UInt64(max(1, limit / Self.second)), input: input)
    var output: Int32 = -1
    let child = crlt_run_restricted(words, &limits, rights.user, rights.group, &output)
    guard child > 0 else { return nil }
    let bytes = read(output, until: end)
    close(output)
    // A program that has written all its output ends soon.
    let rest = bytes == nil ? 0 : max(100, (end - crl_monotonic_nanoseconds()) / 1_000_000)
    let status = crlt_end_restricted(child, Int32(clamping: rest))
    budget -= crl_monotonic_nanoseconds() - begin
    if bytes == nil || budget <= 0 { isGivenUp = true }
    return bytes.flatMap { status == 0 ? String(decoding: $0, as: UTF8.self) : nil }
  }

  /// Reads a pipe up to its end; returns nil if that takes too long or yields too much.
  private func read(_ pipe: Int32, until end: Int64) -> [UInt8]? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let rest = (end - crl_monotonic_nanoseconds()) / 1_000_000
      guard rest > 0 else { return nil }
      var entry = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
      let answer = poll(&entry, 1, Int32(clamping: rest))
      if answer == 0 || (answer < 0 && errno == EINTR) { continue }
      let count = RunLoopLibC.read(pipe, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return count == 0 ? bytes : nil }
      bytes += chunk[..<count]
      guard bytes.count <= Self.mostBytes else { return nil }
    }
  }
}
