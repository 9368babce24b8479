// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@MainActor
private final class Probe: View {
  var layouts = 0
  var draws = 0
  var whenLaidOut: ((Probe) -> Void)?
  var whenDrawn: ((Probe) -> Void)?

  override func layoutSubviews() {
    layouts += 1
    whenLaidOut?(self)
  }

  override func draw(_ canvas: inout Canvas) {
    draws += 1
    canvas.draw("\(draws)", at: .zero)
    whenDrawn?(self)
  }
}

@Suite("Layout, display and commit", .timeLimit(.minutes(20)))
@MainActor
struct CommitTests {
  private func perform(_ body: (Stage, Probe) throws -> Void) throws {
    try Stage.perform { stage in
      let probe = Probe(frame: Rect(x: 0, y: 0, width: 8, height: 1))
      stage.window.addSubview(probe)
      stage.logged = { step in if case .commit = step { true } else { false } }
      try body(stage, probe)
    }
  }

  @Test("a view marked many times in a turn is laid out, drawn and committed once")
  func once() throws {
    try perform { stage, probe in
      stage.at(100) {
        for _ in 0..<10 {
          probe.setNeedsLayout()
          probe.setNeedsDisplay()
        }
        RunLoop.main.wakeUp()
      }
      try stage.run(until: 200)
      #expect(probe.layouts == 2 && probe.draws == 2 && stage.log.text == "commit commit")
      #expect(stage.device.text == "2")
    }
  }

  @Test("only marked views are drawn")
  func onlyMarked() throws {
    try perform { stage, probe in
      let other = Probe(frame: Rect(x: 2, y: 0, width: 8, height: 1))
      let above = Probe(frame: Rect(x: 4, y: 0, width: 8, height: 3))
      stage.window.addSubview(other)
      probe.addSubview(above)
      stage.at(100) { other.setNeedsDisplay() }
      stage.at(200) { probe.frame.origin.x = 1 }
      try stage.run(until: 300)
      #expect([probe, other, above].map(\.draws) == [1, 2, 1] && stage.device.text == " 12  1")
    }
  }

  @Test("views marked by a layout are laid out and drawn in the same commit")
  func markedInLayout() throws {
    try perform { stage, probe in
      let inner = Probe(frame: Rect(x: 3, y: 0, width: 2, height: 1))
      probe.addSubview(inner)
      let label = Label("a", frame: Rect(x: 0, y: 1, width: 8, height: 1))
      stage.window.addSubview(label)
      probe.whenLaidOut = { probe in
        label.text = "b"
        inner.frame.size.width = 3
        if probe.layouts < 4 { inner.setNeedsLayout() }
      }
      inner.whenLaidOut = { _ in if probe.layouts < 4 { probe.setNeedsLayout() } }
      try stage.run(until: 100)
      #expect(probe.layouts == 4 && stage.log.text == "commit" && stage.device.text == "1  1\nb")
    }
  }

  @Test("a layout that always marks itself ends after fixed rounds, is reported once per commit, and blocks nothing")
  func endlessLayout() throws {
    try perform { stage, probe in
      probe.name = "endless"
      probe.whenLaidOut = { $0.setNeedsLayout() }
      let before = Diagnostic.layout.count
      stage.at(100) { probe.setNeedsDisplay() }
      stage.at(200) { probe.setNeedsLayout() }
      try stage.run(until: 1000)
      #expect(probe.layouts == 2 * Window.layoutRounds && Diagnostic.layout.count - before == 2)
      #expect(stage.log.text == "commit commit commit:0" && probe.draws == 2)
    }
  }

  @Test("two views that always mark each other are stopped too")
  func mutualLayout() throws {
    try perform { stage, probe in
      let other = Probe(frame: Rect(x: 0, y: 1, width: 8, height: 1))
      probe.addSubview(other)
      probe.whenLaidOut = { _ in other.setNeedsLayout() }
      other.whenLaidOut = { _ in probe.setNeedsLayout() }
      let before = Diagnostic.layout.count
      try stage.run(until: 1000)
      #expect(Diagnostic.layout.count - before == 1 && stage.log.text == "commit")
      #expect(probe.layouts == Window.layoutRounds)
    }
  }

  @Test("views marked during drawing are drawn in the next commit")
  func markedInDraw() throws {
    try perform { stage, probe in
      probe.whenDrawn = { if $0.draws < 3 { $0.setNeedsDisplay() } }
      try stage.run(until: 100)
      #expect(probe.draws == 3 && stage.log.text == "commit commit commit" && stage.device.text == "3")
    }
  }

  @Test("a commit that changes no cell writes nothing, and without a mark there is none")
  func nothingChanged() throws {
    try perform { stage, probe in
      let label = Label("same", frame: Rect(x: 0, y: 1, width: 8, height: 1))
      stage.window.addSubview(label)
      stage.at(100) {
        label.text = "same"
        label.style = .plain
        probe.frame = probe.frame
      }
      stage.at(200) { label.setNeedsDisplay() }
      stage.at(300) { probe.setNeedsLayout() }
      try stage.run(until: 400)
      #expect(stage.log.text == "commit commit:0 commit:0" && stage.application.frameCount == 1)
    }
  }

  @Test(
    "nothing is drawn while the device has a frame under way, and one later frame shows all changes"
  )
  func notReady() throws {
    try perform { stage, probe in
      stage.at(100) {
        stage.device.isReadyForFrame = false
        probe.setNeedsDisplay()
      }
      stage.at(150) { probe.setNeedsDisplay() }
      stage.at(199) { #expect(probe.draws == 1) }
      stage.at(200) { stage.device.becomeReady() }
      // The device becomes ready although no commit is waiting for it.
      stage.at(300) { stage.device.becomeReady() }
      try stage.run(until: 400)
      #expect(probe.draws == 2 && stage.log.text == "commit commit" && stage.device.text == "2")
    }
  }

  @Test(
    "a completion block runs after the frame with its transaction's changes, an outer one after the inner")
  func transaction() throws {
    try perform { stage, probe in
      let label = Label("a", frame: Rect(x: 0, y: 1, width: 8, height: 1))
      stage.window.addSubview(label)
      stage.at(100) {
        stage.device.isReadyForFrame = false
        Transaction.begin()
        Transaction.setCompletionBlock { stage.log.write("outer:\(stage.device.text)") }
        Transaction.begin()
        Transaction.setCompletionBlock { stage.log.write("inner") }
        label.text = "b"
        Transaction.commit()
        stage.log.write("between")
        Transaction.commit()
      }
      stage.at(200) { stage.device.becomeReady() }
      try stage.run(until: 300)
      #expect(stage.log.text == "commit between commit inner outer:1\nb")
    }
  }

  @Test("a transaction without changes completes in its turn; one whose frame never comes, at the application's end")
  func completions() throws {
    try perform { stage, probe in
      @MainActor func transaction(_ word: String) {
        Transaction.begin()
        Transaction.setCompletionBlock { stage.log.write(word) }
        Transaction.commit()
      }
      transaction("before")
      stage.at(100) { transaction("empty") }
      stage.at(200) {
        stage.device.isReadyForFrame = false
        transaction("late")
      }
      try stage.run(until: 300)
      #expect(stage.log.text == "before commit commit:0 empty late")
    }
  }

  @Test("a flush shows changes at once")
  func flush() throws {
    try perform { stage, probe in
      stage.at(100) {
        probe.setNeedsDisplay()
        Transaction.flush()
        stage.log.write("flushed:\(stage.device.text)")
      }
      try stage.run(until: 300)
      #expect(stage.log.text == "commit commit flushed:2")
    }
  }

  @Test("a view that enters the window keeps its mark, and a hidden one is drawn when it becomes visible")
  func entering() throws {
    try perform { stage, probe in
      let inner = Probe(frame: Rect(x: 0, y: 0, width: 3, height: 1))
      let box = View(frame: Rect(x: 0, y: 2, width: 5, height: 1))
      box.addSubview(inner)
      inner.setNeedsLayout()
      stage.at(100) { stage.window.addSubview(box) }
      stage.at(200) {
        box.isHidden = true
        inner.setNeedsDisplay()
      }
      stage.at(250) { #expect(stage.device.text == "1" && inner.draws == 1) }
      stage.at(300) { box.isHidden = false }
      stage.at(400) { inner.frame.origin.x = 30 }
      stage.at(450) { inner.setNeedsDisplay() }
      stage.at(500) { inner.frame.origin.x = 2 }
      try stage.run(until: 600)
      #expect(inner.draws == 3 && inner.layouts == 1 && stage.device.text == "1\n\n  3")
    }
  }

  @Test(
    "a source that signals itself, or a block that schedules itself, still allows 20 to 31 frames in 500 ms",
    arguments: [true, false])
  func storm(isSource: Bool) throws {
    try perform { stage, probe in
      let time = stage.time
      let source = RunLoop.Source { source in
        time.spend(.microseconds(100))
        MainActor.assumeIsolated { probe.setNeedsDisplay() }
        if time.elapsed < .milliseconds(1500) { source.signal() }
      }
      @Sendable func block() {
        time.spend(.microseconds(100))
        MainActor.assumeIsolated { probe.setNeedsDisplay() }
        if time.elapsed < .milliseconds(1500) { RunLoop.main.perform(block) }
      }
      RunLoop.main.add(source, forMode: .common)
      stage.at(1000) {
        if isSource { source.signal() } else { RunLoop.main.perform(block) }
        RunLoop.main.wakeUp()
      }
      // The first frame was made before, and the frame of the last change may come later.
      try stage.run(until: 2000)
      let count = stage.device.presentations - 2
      #expect((20...31).contains(count), "\(count)")
    }
  }

  @Test("an open application without work lets the loop sleep")
  func rest() throws {
    try Stage.perform { stage in
      let list = ListView { _, row in row ?? ListRow() }
      list.frame = Rect(x: 0, y: 0, width: 10, height: 5)
      list.rowCount = 100
      list.addGestureRecognizer(TapGestureRecognizer { _ in })
      stage.window.addSubview(list)
      // Everything that has a timer has used it once.
      stage.send(.press(0, 0), .release(0, 0), .wheel(.down, 0, 0), at: 10)
      stage.at(1000) { stage.log.clear() }
      stage.at(3_600_000) { stage.log.write("END") }
      try stage.run(until: 3_600_000)
      #expect(stage.log.text.hasPrefix("AW END") || stage.log.text.hasPrefix("END"), "\(stage.log.text)")
    }
  }
}
