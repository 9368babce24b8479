// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import TestSupport
import Testing

@testable import RunLoopDisplay
@testable import RunLoopDisplayTesting

/// Random frames in a real tmux, whose picture must match the frames and the emulated terminal's picture.
@Suite("Frames in tmux", .timeLimit(.minutes(20)))
struct TmuxScreenTests {
  private static let timeout = "/usr/bin/timeout"
  static let tmux = ["/usr/bin/tmux", "/usr/local/bin/tmux"].first {
    FileManager.default.isExecutableFile(atPath: $0) && FileManager.default.isExecutableFile(atPath: timeout)
  }
  private static let size = Size(width: 40, height: 12)
  private static let seeds = 200

  /// The features that tmux reports when asked.
  private static let features = HeadlessTerminal.Features(
    synchronizes: false, clusters: false, repeats: true, erasesWithColor: true, keyboard: false,
    environment: ["TERM": "tmux-256color", "COLORTERM": "truecolor"])

  @Test("random frames look the same in tmux as in the emulated terminal", .enabled(if: tmux != nil))
  func random() throws {
    let tmux = try #require(Self.tmux)
    let scratch = Scratch()
    var screens: [EncodedScreen] = []
    var grids: [Grid] = []
    for seed in 0..<Self.seeds {
      var random = SplitMix64(seed: UInt64(seed))
      var screen = EncodedScreen(Self.size, Self.features)
      var drawing = RandomDrawing(size: Self.size, clusters: false)
      var bytes = Data("\u{1B}[?7l".utf8)
      for _ in 0..<30 {
        let scrolls = drawing.change(&random)
        screen.show(drawing.canvas.grid, scrolls: scrolls)
        bytes.append(contentsOf: screen.bytes)
      }
      try bytes.write(to: URL(fileURLWithPath: scratch("\(seed)")))
      screens.append(screen)
      grids.append(drawing.canvas.grid)
    }
    try show(in: tmux, scratch)
    for (seed, screen) in screens.enumerated() {
      #expect(screen.mismatch(grids[seed]) == nil && screen.emulator.errors == [])
      var other = screen
      other.emulator = try capture(scratch("\(seed).shown"))
      for y in 0..<Self.size.height {
        #expect(other.emulator.grid.text(row: y) == screen.emulator.grid.text(row: y), "seed \(seed), row \(y)")
      }
      // The marker overwrites the last column, and half of a wide character there.
      other.emulator = try capture(scratch("\(seed).marked"))
      let mismatch = other.mismatch(grids[seed], columns: 0..<Self.size.width - 2)
      #expect(mismatch == nil, "seed \(seed): \(mismatch ?? "")")
    }
  }

  /// Makes tmux show the files one after another, and record its screen after each.
  private func show(in tmux: String, _ scratch: Scratch) throws {
    // tmux replies once it has shown everything sent before the query.
    scratch.make(
      "driver",
      text: """
        printf %s "$TMUX" >"${0%driver}server"
        stty raw -echo || exit
        for seed in $(seq 0 \(Self.seeds - 1)); do
          cat "${0%driver}$seed" || exit
          printf '\\033[c'
          IFS= read -r -t 60 -d c answer || exit
          "\(tmux)" -S "${0%driver}socket" capture-pane -peN -t "$TMUX_PANE" >"${0%driver}$seed.shown" || exit
          # What was erased is written down only before something that was written.
          for row in $(seq \(Self.size.height)); do printf '\\033[m\\033[%d;\(Self.size.width)Hx' "$row"; done
          printf '\\033[c'
          IFS= read -r -t 60 -d c answer || exit
          "\(tmux)" -S "${0%driver}socket" capture-pane -peN -t "$TMUX_PANE" >"${0%driver}$seed.marked" || exit
        done
        "\(tmux)" -S "${0%driver}socket" wait-for -S end
        """)
    // Whatever happens, the tmux server ends.
    defer {
      let isOver = try? run(tmux, scratch, seconds: 60, ["kill-server"]) != Self.timeIsOver
      let words = (try? String(contentsOfFile: scratch("server"), encoding: .utf8))?.split(separator: ",") ?? []
      if isOver != true, words.count == 3, let server = pid_t(words[1]) { kill(server, SIGKILL) }
    }
    let status = try run(
      tmux, scratch, seconds: 900,
      [
        "-f", "/dev/null", "-u", "new-session", "-d", "-x", "\(Self.size.width)", "-y", "\(Self.size.height)",
        "bash '\(scratch("driver"))'", ";", "set", "-g", "status", "off", ";", "wait-for", "end",
      ])
    try #require(status == 0, "tmux ended with status \(status)")
  }

  /// The status of a program that was killed because it took too long.
  private static let timeIsOver: Int32 = 128 + SIGKILL

  /// Runs tmux, for at most the given seconds, and returns its status.
  private func run(_ tmux: String, _ scratch: Scratch, seconds: Int, _ arguments: [String]) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Self.timeout)
    process.environment = [
      "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "HOME": scratch.path,
      "SHELL": "/bin/sh",
    ]
    process.arguments = ["-s", "KILL", "\(seconds)", tmux, "-S", scratch("socket")] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.start()
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
  }

  /// A screen as recorded by tmux.
  private func capture(_ path: String) throws -> ScreenEmulator {
    let text = try String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
    var screen = ScreenEmulator(size: Self.size, features: .all)
    screen.write("\u{1B}[?7l".utf8)
    for (row, line) in text.split(separator: "\n", omittingEmptySubsequences: false).prefix(Self.size.height)
      .enumerated()
    {
      screen.write("\u{1B}[\(row + 1)H\(line)".utf8)
    }
    return screen
  }
}
