// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopDisplay

/// A view that performs an action in its layout, and counts its layouts.
@MainActor
private final class Worker: View {
  var layouts = 0
  var work: (Worker) -> Void = { _ in }

  convenience init(_ name: String, _ work: @escaping (Worker) -> Void = { _ in }) {
    self.init(frame: Rect(x: 0, y: 0, width: 4, height: 1))
    self.name = name
    self.work = work
  }

  override func layoutSubviews() {
    layouts += 1
    work(self)
  }
}

@Suite("A layout that changes the tree of views", .timeLimit(.minutes(20)))
@MainActor
struct LayoutTests {
  @Test("views removed or moved by another view's layout do not make their neighbours be skipped")
  func removal() throws {
    try Stage.perform { stage in
      let (first, second, third) = (Worker("first"), Worker("second"), Worker("third"))
      first.work = { $0.removeFromSuperview() }
      second.work = { second in second.superview?.bringSubviewToFront(second) }
      for view in [first, second, third] { stage.window.addSubview(view) }
      stage.at(10) { third.setNeedsLayout() }
      try stage.run(until: 20)
      #expect([first, second, third].map(\.layouts) == [1, 1, 2])
    }
  }

  @Test("a view added by a layout is laid out in the same commit, and so are the views it adds")
  func adding() throws {
    try Stage.perform { stage in
      stage.logged = { step in if case .commit = step { true } else { false } }
      let inner = Worker("inner")
      let middle = Worker("middle") { $0.addSubview(inner) }
      let outer = Worker("outer") { $0.addSubview(middle) }
      stage.window.addSubview(outer)
      try stage.run(until: 20)
      #expect([outer, middle, inner].map(\.layouts) == [1, 1, 1] && stage.log.text == "commit")
    }
  }

  @Test(
    "layouts that each add a view, beside or within them, end after a fixed number of rounds and are reported",
    arguments: [false, true])
  func growth(isNested: Bool) throws {
    try Stage.perform { stage in
      var count = 0
      @MainActor func add(to view: View) {
        count += 1
        // Nothing else would stop an endless layout.
        guard count < 100_000 else { return }
        view.addSubview(Worker("\(count)") { add(to: isNested ? $0 : stage.window) })
      }
      let before = Diagnostic.layout.count
      stage.at(10) { add(to: stage.window) }
      try stage.run(until: 1000)
      #expect(count <= Window.layoutRounds + 1 && Diagnostic.layout.count == before + 1)
    }
  }

  @Test("layouts that request an immediate layout terminate too, and the views are laid out next time")
  func immediately() throws {
    try Stage.perform { stage in
      let view = Worker("endless")
      var isEndless = true
      view.work = { view in
        guard isEndless, view.layouts < 1000 else { return }
        view.setNeedsLayout()
        view.layoutIfNeeded()
      }
      let before = Diagnostic.layout.count
      stage.window.addSubview(view)
      stage.at(10) {
        #expect(view.layouts < 1000 && Diagnostic.layout.count > before)
        isEndless = false
        view.layouts = 0
        view.setNeedsLayout()
        view.layoutIfNeeded()
        #expect(view.layouts == 1)
      }
      try stage.run(until: 20)
      #expect(view.layouts == 1)
    }
  }
}
