// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay
import RunLoopDisplayTesting

/// The cost of drawing and showing a frame after similar ones: on the canvas, in the encoder, and in the headless
/// terminal, which stores the bytes.
let displayGates: [Gate] = [
  Gate(name: "frame of text, drawn and shown", count: 1000) { count, measure in
    onScreen(count, measure) { canvas, frame in
      canvas.fill(canvas.visibleRect)
      for y in 0..<24 {
        canvas.draw(texts[(y + frame) % texts.count], at: Point(x: frame % 3, y: y), style: styles[y % 3])
      }
      return []
    }
  },
  Gate(name: "frame of text in any script", count: 1000) { count, measure in
    onScreen(count, measure) { canvas, frame in
      canvas.fill(canvas.visibleRect, ".")
      for y in 0..<24 { canvas.draw(scripts[(y + frame) % scripts.count], at: Point(x: frame % 3, y: y)) }
      return []
    }
  },
  Gate(name: "frame that scrolls", count: 1000) { count, measure in
    let area = Rect(x: 0, y: 0, width: 80, height: 24)
    let hints = [ScrollHint(area: area, rows: 1)]
    onScreen(count, measure) { canvas, frame in
      canvas.fill(canvas.visibleRect)
      for y in 0..<24 { canvas.draw(texts[(y + frame) % texts.count], at: Point(x: 0, y: y)) }
      return hints
    }
  },
  Gate(name: "frame without a difference", count: 1000) { count, measure in
    onScreen(count, measure) { canvas, _ in
      canvas.fill(canvas.visibleRect, "x")
      return []
    }
  },
]

private let texts = [
  "a row of text that is as long as rows are", "another one", "   12345   67890   of numbers", "",
  "------------------------",
  "the sixth of seven rows", "the last of them, with a bit more of text than the others",
]
private let scripts = ["运行循环等待直到有事件到达", "Größe e\u{301}t\u{302}", "👨‍👩‍👧 family", "한글 텍스트", "plain"]
private let styles: [Style] = [.plain, .reversed, Style(foreground: .rgb(10, 20, 30), attributes: .bold)]

/// Shows frames on a terminal, some of them before counting starts.
private func onScreen(
  _ count: Int, _ measure: Measure, _ draw: @Sendable (inout Canvas, _ frame: Int) -> [ScrollHint]
) {
  MainActor.assumeIsolated {
    let terminal = HeadlessTerminal(size: Size(width: 80, height: 24), outputCapacity: .max)
    do throws(DisplayError) { try terminal.open() } catch { fail("\(error)") }
    terminal.discardsOutput = true
    var canvas = Canvas(size: terminal.size)
    @MainActor func show(_ frame: Int) {
      let hints = draw(&canvas, frame)
      terminal.present(canvas.grid, scrolls: hints)
    }
    for frame in 0..<100 { show(frame) }
    measure { for frame in 100..<100 + count { show(frame) } }
    terminal.close()
  }
}
