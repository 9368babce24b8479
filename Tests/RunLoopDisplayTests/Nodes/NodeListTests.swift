// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("A list whose rows are drawn by nodes", .timeLimit(.minutes(20)))
@MainActor
struct NodeListTests {
  /// Records which rows are drawn by the main thread, and which by workers.
  private final class Painter: Sendable {
    let thread = RunLoop.callingThreadID
    let onMain = Box<[Int]>([])
    let onWorkers = Box<[Int]>([])

    func content(_ index: Int) -> any NodeContent {
      DrawnContent { canvas, _ in
        canvas.draw("row \(index)", at: .zero)
        let rows = RunLoop.callingThreadID == self.thread ? self.onMain : self.onWorkers
        rows.update { $0.append(index) }
      }
    }
  }

  private func makeList(_ stage: NodeStage, _ painter: Painter, count: Int = 1_000_000) -> NodeListView {
    let list = NodeListView(
      frame: Rect(x: 0, y: 0, width: 12, height: 4), group: stage.group, workers: stage.workers,
      placeholder: NodePlaceholder("-"), content: painter.content)
    list.rowCount = count
    stage.window.addSubview(list)
    return list
  }

  @Test("rows scrolled into view were already drawn by workers, and the first page by the main thread")
  func ahead() throws {
    try NodeStage.perform { stage in
      let painter = Painter()
      let list = makeList(stage, painter)
      try stage.turn()
      #expect(stage.text == "row 0\nrow 1\nrow 2\nrow 3")
      for step in 1...10 {
        try stage.turns { stage.group.countUnderWay == 0 }
        list.contentOffset.y += 3
        try stage.turn()
        #expect(stage.text == (0..<4).map { "row \(step * 3 + $0)" }.joined(separator: "\n"))
      }
      #expect(painter.onMain.value == [0, 1, 2, 3])
      // Rows that were visible are not drawn again on the way back.
      try stage.turns { stage.group.countUnderWay == 0 }
      list.contentOffset.y -= 3
      try stage.turns { stage.group.countUnderWay == 0 }
      #expect(painter.onWorkers.value.count { (27..<31).contains($0) } == 4 && painter.onMain.value.count == 4)
      #expect(Set(painter.onWorkers.value).isDisjoint(with: painter.onMain.value))
    }
  }

  @Test("after a jump the main thread draws the visible rows, and no earlier row is seen")
  func jump() throws {
    try NodeStage.perform { stage in
      let painter = Painter()
      let list = makeList(stage, painter)
      try stage.turn()
      list.contentOffset.y = 500_000
      try stage.turn()
      #expect(stage.text == (0..<4).map { "row \(500_000 + $0)" }.joined(separator: "\n"))
      #expect(painter.onMain.value == [0, 1, 2, 3] + (500_000..<500_004))
      list.contentOffset.y = .max
      try stage.turns { stage.text == (0..<4).map { "row \(999_996 + $0)" }.joined(separator: "\n") }
    }
  }

  @Test("rows that take too long show a placeholder and no other row's text")
  func placeholders() throws {
    try NodeStage.perform { stage in
      let (time, thread) = (stage.time, stage.thread)
      let hold = Hold()
      let list = NodeListView(
        frame: Rect(x: 0, y: 0, width: 6, height: 4), group: stage.group, workers: stage.workers,
        placeholder: NodePlaceholder("-")
      ) { index in
        DrawnContent { canvas, _ in
          if RunLoop.callingThreadID == thread { time.spend(.milliseconds(4)) } else if index >= 100 { hold.occupy() }
          canvas.draw("row \(index)", at: .zero)
        }
      }
      list.rowCount = 1000
      stage.window.addSubview(list)
      try stage.turns { stage.text == "row 0\nrow 1\nrow 2\nrow 3" }
      list.contentOffset.y = 100
      try stage.turn()
      #expect(stage.text == "row 10\n------\n------\n------")
      hold.released.open()
      try stage.turns {
        list.visibleRows.allSatisfy { (list.visibleRow($0) as? NodeListRow)?.node.isUpToDate ?? false }
      }
    }
  }

  @Test("the selected row is reversed even when drawn later, and a row reused from it is not")
  func selection() throws {
    try NodeStage.perform { stage in
      let list = makeList(stage, Painter())
      try stage.turn()
      list.selectedRow = 1
      try stage.turn()
      let reversed = { (0..<4).filter { stage.device.shown[0, $0].style.attributes.contains(.reverse) } }
      #expect(reversed() == [1])
      list.contentOffset.y = 1
      try stage.turn()
      #expect(reversed() == [0])
      list.contentOffset.y = 2
      try stage.turn()
      #expect(reversed() == [])
    }
  }

  @Test("reloaded rows, and the rows of a list with a new width, are drawn again")
  func reload() throws {
    try NodeStage.perform { stage in
      let word = Box("old")
      let list = NodeListView(frame: Rect(x: 0, y: 0, width: 12, height: 2), group: stage.group, workers: stage.workers)
      {
        TextContent("\(word.value) \($0)")
      }
      list.rowCount = 10
      stage.window.addSubview(list)
      try stage.turns { stage.group.countUnderWay == 0 }
      // Scrolling, so that some rows are reused for other lines.
      list.contentOffset.y = 1
      try stage.turn()
      word.value = "new"
      list.reload()
      list.contentOffset.y = 2
      try stage.turns { stage.text == "new 2\nnew 3" }
      try stage.turns { stage.group.countUnderWay == 0 }
      for row in [1, 0] {
        list.contentOffset.y = row
        try stage.turn()
        #expect(stage.text == "new \(row)\nnew \(row + 1)")
      }
      list.frame.size.width = 4
      try stage.turns { stage.text == "new…\nnew…" }
    }
  }

  @Test("a list that leaves its window cancels the drawing ahead")
  func leaves() throws {
    try NodeStage.perform { stage in
      let hold = Hold()
      let thread = stage.thread
      let list = NodeListView(frame: Rect(x: 0, y: 0, width: 6, height: 2), group: stage.group, workers: stage.workers)
      { _ in
        DrawnContent { _, _ in if RunLoop.callingThreadID != thread { hold.occupy() } }
      }
      list.rowCount = 100
      stage.window.addSubview(list)
      try stage.turn()
      hold.begun.wait()
      list.removeFromSuperview()
      try stage.turns { stage.group.countUnderWay == 0 }
      #expect(!hold.released.isOpen)
      hold.released.open()
    }
  }

  @Test("the model is asked on the main thread, once per row, and never past its end")
  func model() throws {
    try NodeStage.perform { stage in
      @MainActor
      final class Model {
        var rows = (0..<100).map { "row \($0)" }
        var asked: [Int] = []
      }
      let model = Model()
      let list = NodeListView(
        frame: Rect(x: 0, y: 0, width: 12, height: 4), group: stage.group, workers: stage.workers
      ) { index in
        model.asked.append(index)
        return DrawnContent { [text = model.rows[index]] canvas, _ in canvas.draw(text, at: .zero) }
      }
      list.rowCount = model.rows.count
      stage.window.addSubview(list)
      try stage.turns { stage.group.countUnderWay == 0 && stage.text == "row 0\nrow 1\nrow 2\nrow 3" }
      for _ in 0..<8 {
        list.contentOffset.y += 1
        try stage.turn()
      }
      try stage.turns { stage.group.countUnderWay == 0 }
      #expect(model.asked.count == Set(model.asked).count)
      list.contentOffset.y = 90
      try stage.turn()
      model.asked = []
      model.rows.removeSubrange(5...)
      list.rowCount = 5
      list.reload()
      try stage.turns { stage.group.countUnderWay == 0 && stage.text == "row 1\nrow 2\nrow 3\nrow 4" }
      #expect(model.asked.allSatisfy { $0 < 5 } && model.asked.count == Set(model.asked).count)
    }
  }

  @Test("a batch that completes before a shorter list is laid out asks for no row")
  func batchOfAShorterList() throws {
    try NodeStage.perform { stage in
      let hold = Hold()
      // No worker keeps waiting if the test fails.
      defer { hold.released.open() }
      let thread = stage.thread
      let model = ListModel()
      let list = NodeListView(
        frame: Rect(x: 0, y: 0, width: 12, height: 4), group: stage.group, workers: stage.workers
      ) { index in
        model.asked.append("\(index)")
        if index >= model.count { model.tooLarge += 1 }
        return DrawnContent { canvas, _ in
          if RunLoop.callingThreadID != thread { hold.occupy() }
          canvas.draw("row \(index)", at: .zero)
        }
      }
      list.rowCount = model.count
      stage.window.addSubview(list)
      try stage.turn()
      list.contentOffset.y = 12
      try stage.turn()
      // Nothing is laid out while the device accepts no frame.
      stage.device.isReadyForFrame = false
      model.count = 20
      list.rowCount = model.count
      let before = model.asked.count
      hold.released.open()
      try stage.turns { stage.group.countUnderWay == 0 }
      #expect(model.asked.count == before && model.tooLarge == 0)
      stage.device.becomeReady()
      try stage.turn()
      #expect(stage.text == "row 12\nrow 13\nrow 14\nrow 15" && model.tooLarge == 0)
    }
  }

  @Test("inserted and deleted rows, and rows of different heights, match the model and are asked for once")
  func changes() throws {
    try NodeStage.perform { stage in
      let model = ListModel()
      model.rows = (0..<40).map { "row \($0)" }
      let list = NodeListView(
        frame: Rect(x: 0, y: 0, width: 12, height: 4), group: stage.group, workers: stage.workers
      ) { index in
        model.asked.append(model.rows[index])
        return DrawnContent { [text = model.rows[index]] canvas, _ in
          canvas.draw(text, at: .zero)
          if canvas.visibleRect.size.height > 1 { canvas.draw("more", at: Point(x: 0, y: 1)) }
        }
      }
      list.rowCount = model.rows.count
      stage.window.addSubview(list)
      @MainActor func settle() throws {
        try stage.turns { stage.group.countUnderWay == 0 }
        try stage.turn()
      }
      try stage.turn()
      try settle()
      model.asked = []
      model.rows.insert("new", at: 1)
      list.insertRows(at: 1..<2)
      try stage.turn()
      try settle()
      #expect(stage.text == "row 0\nnew\nrow 1\nrow 2" && model.asked.filter { $0 == "new" } == ["new"])
      #expect(!model.asked.contains("row 0") && !model.asked.contains("row 1"))
      model.rows.removeSubrange(0..<2)
      list.deleteRows(at: 0..<2)
      try stage.turn()
      try settle()
      #expect(stage.text == "row 1\nrow 2\nrow 3\nrow 4")
      list.heightForRow = { model.rows[$0] == "row 2" ? 2 : 1 }
      try stage.turn()
      try settle()
      #expect(stage.text == "row 1\nrow 2\nmore\nrow 3")
      list.contentOffset.y = 20
      try settle()
      list.contentOffset.y = 1
      try settle()
      #expect(stage.text == "row 2\nmore\nrow 3\nrow 4")
    }
  }

  @Test("rows drawn ahead are not asked for again when others are inserted, deleted or moved")
  func keepsDrawings() throws {
    try NodeStage.perform { stage in
      let model = ListModel()
      model.rows = (0..<40).map { "row \($0)" }
      let hold = Hold()
      // No worker keeps waiting if the test fails.
      defer { hold.released.open() }
      let thread = stage.thread
      let list = NodeListView(
        frame: Rect(x: 0, y: 0, width: 12, height: 4), group: stage.group, workers: stage.workers
      ) { index in
        model.asked.append(model.rows[index])
        return DrawnContent { [text = model.rows[index]] canvas, _ in
          if text == "late", RunLoop.callingThreadID != thread { hold.occupy() }
          canvas.draw(text, at: .zero)
        }
      }
      list.rowCount = model.rows.count
      stage.window.addSubview(list)
      @MainActor func asked() throws -> [String] {
        try stage.turns { stage.group.countUnderWay == 0 }
        try stage.turn()
        defer { model.asked = [] }
        return model.asked
      }
      try stage.turn()
      #expect(try asked() == (0..<12).map { "row \($0)" })
      model.rows.insert("new", at: 1)
      list.insertRows(at: 1..<2)
      try stage.turn()
      #expect(try asked() == ["new"] && stage.text == "row 0\nnew\nrow 1\nrow 2")
      model.rows.insert(model.rows.remove(at: 9), at: 6)
      list.moveRow(at: 9, to: 6)
      try stage.turn()
      #expect(try asked() == [])
      model.rows.removeSubrange(0..<2)
      list.deleteRows(at: 0..<2)
      try stage.turn()
      #expect(try asked() == ["row 11", "row 12"] && stage.text == "row 1\nrow 2\nrow 3\nrow 4")
      list.contentOffset.y = 3
      try stage.turn()
      #expect(stage.text == "row 4\nrow 8\nrow 5\nrow 6")
      _ = try asked()
      // Rows that are currently being drawn get other numbers.
      model.rows.insert("late", at: 8)
      list.insertRows(at: 8..<9)
      try stage.turn()
      hold.begun.wait()
      model.rows.insert("first", at: 0)
      list.insertRows(at: 0..<1)
      model.rows.insert("fifth", at: 5)
      list.insertRows(at: 5..<6)
      hold.released.open()
      try stage.turn()
      let rows = try asked()
      #expect(Set(rows).count == rows.count && rows.contains("late") && rows.contains("fifth"))
      #expect(stage.text == "row 4\nfifth\nrow 8\nrow 5")
      list.contentOffset.y = 8
      try stage.turn()
      #expect(stage.text == "row 6\nrow 7\nlate\nrow 9")
      #expect(try !asked().contains("late"))
    }
  }
}

/// The rows of a list, and a record of the rows that the list has requested.
@MainActor
private final class ListModel {
  var rows: [String] = []
  var count = 100
  var asked: [String] = []
  var tooLarge = 0
}
