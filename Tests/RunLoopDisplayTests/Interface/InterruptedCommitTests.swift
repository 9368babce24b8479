// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopDisplay

/// A view that performs an action once, during its layout or drawing.
@MainActor
private final class Interrupter: View {
  var inLayout: (() -> Void)?
  var inDraw: (() -> Void)?
  var draws = 0

  override func layoutSubviews() {
    let body = inLayout
    inLayout = nil
    body?()
  }

  override func draw(_ canvas: inout Canvas) {
    draws += 1
    canvas.draw("drawn \(draws)", at: .zero)
    let body = inDraw
    inDraw = nil
    body?()
  }
}

@Suite("A commit in whose middle the device changes", .timeLimit(.minutes(20)))
@MainActor
struct InterruptedCommitTests {
  private func perform(_ body: (Stage, Interrupter) throws -> Void) throws {
    try Stage.perform(width: 12, height: 4) { stage in
      let view = Interrupter(frame: Rect(x: 0, y: 0, width: 12, height: 1))
      stage.window.addSubview(view)
      stage.logged = { _ in false }
      try body(stage, view)
    }
  }

  /// Performs an action during a layout or drawing at a given time, with a completion block for the frame.
  private func interrupt(_ stage: Stage, _ view: Interrupter, inLayout: Bool, _ body: @escaping @MainActor () -> Void) {
    Transaction.begin()
    Transaction.setCompletionBlock { stage.log.write("shown:\(stage.device.text)") }
    if inLayout { view.inLayout = body } else { view.inDraw = body }
    view.setNeedsLayout()
    view.setNeedsDisplay()
    Transaction.commit()
  }

  @Test("a device that becomes busy during a commit gets the frame when it is ready again", arguments: [true, false])
  func notReady(inLayout: Bool) throws {
    try perform { stage, view in
      stage.at(10) {
        self.interrupt(stage, view, inLayout: inLayout) { stage.device.isReadyForFrame = false }
      }
      stage.at(50) { #expect(stage.device.text == "drawn 1" && stage.log.text == "") }
      stage.at(100) { stage.device.becomeReady() }
      stage.at(150) { stage.log.write("END") }
      try stage.run(until: 200)
      #expect(stage.log.text == "shown:drawn 2 END")
    }
  }

  @Test("a device suspended during a commit gets the frame when it is resumed", arguments: [true, false])
  func suspended(inLayout: Bool) throws {
    try perform { stage, view in
      stage.at(10) {
        self.interrupt(stage, view, inLayout: inLayout) {
          stage.device.suspend()
          stage.device.isReadyForFrame = false
        }
      }
      stage.at(50) { #expect(stage.device.text == "drawn 1" && stage.log.text == "") }
      stage.at(100) {
        stage.device.isReadyForFrame = true
        stage.device.resume()
      }
      stage.at(150) { stage.log.write("END") }
      try stage.run(until: 200)
      #expect(stage.log.text == "shown:drawn 2 END")
    }
  }

  @Test("a device closed during a commit gets no frame, and the completion block is called at the end")
  func closed() throws {
    try perform { stage, view in
      stage.at(10) {
        self.interrupt(stage, view, inLayout: false) {
          stage.device.isReadyForFrame = false
          stage.device.close()
        }
      }
      stage.at(150) { stage.log.write("END") }
      try stage.run(until: 200)
      #expect(stage.log.text == "END shown:drawn 1")
    }
  }

  @Test(
    "a resize that arrives in a run nested in a layout or drawing is shown in full",
    arguments: [true, false], [Size(width: 20, height: 6), Size(width: 8, height: 2)])
  func resized(inLayout: Bool, size: Size) throws {
    try perform { stage, view in
      let last = Label("last", frame: Rect(x: 0, y: 1, width: 4, height: 1))
      last.background = .reversed
      stage.window.addSubview(last)
      stage.at(10) {
        self.interrupt(stage, view, inLayout: inLayout) {
          stage.device.send([.size(size.width, size.height)])
          for _ in 0..<3 { _ = RunLoop.main.run(mode: .default, for: .zero) }
        }
        stage.window.screen.reset(to: stage.window.screen.grid.size)
      }
      try stage.run(until: 200)
      #expect(stage.device.shown.size == size && stage.device.text.hasPrefix("drawn "))
      #expect(stage.device.text.hasSuffix("\nlast"))
    }
  }

  @Test("a drawing replaces contents set while it runs, and the view draws again when marked")
  func contentsInDraw() throws {
    try perform { stage, view in
      stage.at(10) {
        view.inDraw = { view.layer.contents = Grid(size: Size(width: 2, height: 1)) }
        view.setNeedsDisplay()
      }
      stage.at(50) { #expect(stage.device.text == "drawn 2" && view.layer.contents == nil) }
      stage.at(60) { view.setNeedsDisplay() }
      try stage.run(until: 200)
      #expect(stage.device.text == "drawn 3")
    }
  }
}
