// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopTimeline

/// Asks the toolchain's `llvm-symbolizer`, or another that is in the path.
package struct ExternalSymbolizer: FrameSource {
  private let program: String?

  package init() { program = ExternalSymbolizer.find() }

  /// Whether there is one.
  package var isThere: Bool { program != nil }

  package func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]] {
    var found: [[CodeFrame]] = []
    // An argument list is bounded.
    for start in stride(from: 0, to: addresses.count, by: 1000) {
      let part = addresses[start..<min(start + 1000, addresses.count)]
      let answers = ask(["--obj=\(path)"] + part.map { "0x\(String($0, radix: 16))" })
      guard answers.count == part.count else { return [] }
      found += answers
    }
    return found
  }

  package func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame] {
    ask(["--obj=\(path)", symbol]).first ?? []
  }

  private func ask(_ arguments: [String]) -> [[CodeFrame]] {
    guard let program else { return [] }
    let options = ["--no-demangle", "--functions=linkage", "--output-style=LLVM"]
    guard let text = run(program, options + arguments) else { return [] }
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
    // The path may have colons, the line and column have none.
    let parts = place.split(separator: ":", omittingEmptySubsequences: false)
    let line = parts.count >= 3 ? Int(parts[parts.count - 2]) ?? 0 : 0
    let file = parts.dropLast(2).joined(separator: ":")
    let isKnown = !file.isEmpty && !file.hasPrefix("??") && !file.contains("<compiler-generated>")
    return CodeFrame(symbol: symbol, file: isKnown ? file : nil, line: isKnown ? line : 0)
  }

  private static func find() -> String? {
    guard let path = getenv("PATH").map({ String(cString: $0) }) else { return nil }
    let directories = path.split(separator: ":")
    for directory in directories {
      // The toolchain's may be reached through a link.
      guard let resolved = realpath("\(directory)/swift", nil) else { continue }
      defer { free(resolved) }
      let folder = String(cString: resolved).split(separator: "/", omittingEmptySubsequences: false).dropLast()
      let candidate = folder.joined(separator: "/") + "/llvm-symbolizer"
      if access(candidate, X_OK) == 0 { return candidate }
    }
    return directories.map { "\($0)/llvm-symbolizer" }.first { access($0, X_OK) == 0 }
  }

  /// What a program writes; nil if it cannot be run.
  private func run(_ program: String, _ arguments: [String]) -> String? {
    var ends: [Int32] = [0, 0]
    // A child that another thread starts meanwhile does not keep the end open, for which the reading waits.
    guard crl_pipe(&ends) == 0 else { return nil }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var child = pid_t()
    let failure = posix_spawn(&child, program, &actions, nil, words, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard failure == 0 else { return nil }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = read(ends[0], &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    return status == 0 ? String(decoding: bytes, as: UTF8.self) : nil
  }
}
