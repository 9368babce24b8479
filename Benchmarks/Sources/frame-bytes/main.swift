// SPDX-License-Identifier: Apache-2.0

// Shows the frames of Benchmarks/frames on an emulated terminal, with the encoder for real ones, and counts the bytes
// of each.
//
//     frame-bytes [--synchronized]

import RunLoopCore
import RunLoopDisplay
import RunLoopDisplayTesting

/// The features of the emulated terminal, the same as ncurses reads from terminfo.
var features = HeadlessTerminal.Features(
  synchronizes: CommandLine.arguments.contains("--synchronized"), clusters: false, repeats: true, erasesWithColor: true,
  keyboard: false, environment: ["TERM": "xterm-256color"])

func style(_ kind: Character) -> Style {
  switch kind {
  case "r": .reversed
  case "b": Style(attributes: .bold)
  case "1"..."7": Style(foreground: .palette(UInt8(kind.wholeNumberValue ?? 0)))
  default: .plain
  }
}

@MainActor
final class Show {
  var terminal = HeadlessTerminal(features: features)
  var canvas = Canvas(size: Size(width: 80, height: 24))
  var hints: [ScrollHint] = []
  var y = 0
  var isDrawing = false
  var change = ""
  var total = 0
  var frames = 0

  func begin(_ size: Size) {
    terminal = HeadlessTerminal(size: size, features: features)
    do throws(DisplayError) { try terminal.open() } catch { fatalError("\(error)") }
    // Processes the terminal's replies.
    _ = RunLoop.main.run(mode: .default, for: .milliseconds(10))
    canvas = Canvas(size: size)
  }

  func take(_ line: Substring) {
    let isRow = line.hasPrefix("row ")
    if !isRow, isDrawing, !line.hasPrefix("scroll ") { finish() }
    if isRow {
      var x = 0
      for segment in line.dropFirst(4).split(separator: "\u{1F}") {
        x = canvas.draw(segment.dropFirst(), at: Point(x: x, y: y), style: style(segment.first ?? "p"))
      }
      y += 1
    } else if line.hasPrefix("change ") || line == "end" {
      if frames > 1 { print("\(change)\t\(total)\t\(frames - 1)") }
      change = String(line.dropFirst(7))
      frames = 0
      total = 0
    } else if line == "frame" {
      canvas.fill(canvas.visibleRect)
      hints = []
      y = 0
      isDrawing = true
    } else if line.hasPrefix("scroll ") {
      let numbers = line.split(separator: " ").compactMap { Int($0) }
      let area = Rect(x: 0, y: numbers[0], width: canvas.grid.size.width, height: numbers[1])
      hints.append(ScrollHint(area: area, rows: numbers[2]))
    }
  }

  private func finish() {
    isDrawing = false
    let count = terminal.present(canvas.grid, scrolls: hints)
    if frames > 0 { total += count }
    frames += 1
    // The visible text must be the drawn text, or the byte counts are meaningless.
    for row in 0..<canvas.grid.size.height {
      precondition(terminal.line(row) == canvas.grid.text(row: row), "\(change), row \(row): another text is seen")
    }
    precondition(terminal.errors.isEmpty, "\(terminal.errors)")
  }
}

let show = Show()
let size = (readLine() ?? "").split(separator: " ").compactMap { Int($0) }
precondition(size.count == 2, "the script of frames begins with their size")
show.begin(Size(width: size[0], height: size[1]))
while let line = readLine() { show.take(line[...]) }
show.terminal.close()
