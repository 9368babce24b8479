// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The rows of a list", .timeLimit(.minutes(20)))
@MainActor
struct ListRowsTests {
  /// A list of one-word rows, where a final digit is the row's height.
  @MainActor
  private final class Model {
    var rows: [String]
    var provided: [String] = []
    var measured: [String] = []
    var hasHeights = false
    var selections: [Int?] = []
    var made = 100

    init(_ rows: [String]) { self.rows = rows }

    func makeList(width: Int = 20, height: Int = 4) -> ListView {
      let list = ListView(frame: Rect(x: 0, y: 0, width: width, height: height)) { [unowned self] index, reused in
        let row = reused ?? ListRow()
        provided.append(rows[index])
        row.text = rows[index]
        return row
      }
      if hasHeights {
        list.heightForRow = { [unowned self] index in
          measured.append(rows[index])
          return rows[index].last.flatMap { Int(String($0)) } ?? 1
        }
      }
      list.rowCount = rows.count
      return list
    }
  }

  /// Shows a list after each of several changes, and checks its text each time.
  private func show(
    _ list: ListView, height: Int = 4, _ steps: [(change: @MainActor @Sendable () -> Void, text: String)]
  ) throws {
    try Stage.perform(width: 20, height: height) { stage in
      stage.logged = { _ in false }
      stage.window.addSubview(list)
      for (number, step) in steps.enumerated() {
        stage.at(number * 100 + 20) { step.change() }
        stage.at(number * 100 + 90) { #expect(stage.device.text == step.text, "step \(number)") }
      }
      try stage.run(until: steps.count * 100 + 50)
    }
  }

  @Test("inserted, deleted and moved rows appear in their places, and only new ones are requested")
  func changes() throws {
    let model = Model(["a", "b", "c"])
    let list = model.makeList()
    list.selectedRow = 1
    list.selectionDidChange = { [unowned model] in model.selections.append($0) }
    try show(
      list,
      [
        ({}, "a\nb\nc"),
        (
          {
            model.provided = []
            model.rows.insert(contentsOf: ["x", "y"], at: 1)
            list.insertRows(at: 1..<3)
            #expect(list.selectedRow == 3 && list.rowCount == 5)
          }, "a\nx\ny\nb"
        ),
        (
          {
            #expect(model.provided == ["x", "y"])
            model.provided = []
            model.rows.remove(at: 0)
            list.deleteRows(at: 0..<1)
            #expect(list.selectedRow == 2 && list.visibleRow(2)?.isSelected == true)
          }, "x\ny\nb\nc"
        ),
        (
          {
            #expect(model.provided == ["c"])
            model.rows.insert(model.rows.remove(at: 2), at: 0)
            list.moveRow(at: 2, to: 0)
            #expect(list.selectedRow == 0 && model.selections == [])
          }, "b\nx\ny\nc"
        ),
        (
          {
            #expect(model.provided == ["c"])
            model.rows.removeSubrange(0..<2)
            list.deleteRows(at: 0..<2)
            #expect(list.selectedRow == 0 && model.selections == [0] && list.visibleRow(0)?.isSelected == true)
          }, "y\nc"
        ),
        (
          {
            model.rows = []
            list.deleteRows(at: -3..<99)
            #expect(list.rowCount == 0 && list.selectedRow == nil && model.selections == [0, nil])
          }, ""
        ),
        (
          {
            model.rows = ["z"]
            list.insertRows(at: 7..<8)
            list.insertRows(at: 0..<0)
            list.moveRow(at: 5, to: 0)
            list.deleteRows(at: 9..<12)
          }, "z"
        ),
      ])
  }

  @Test("the visible rows stay in place when rows above them are inserted, deleted or moved")
  func place() throws {
    for hasHeights in [false, true] {
      let model = Model((0..<100).map { "row \($0) 1" })
      model.hasHeights = hasHeights
      let list = model.makeList()
      let visible = "row 50 1\nrow 51 1\nrow 52 1\nrow 53 1"
      try show(
        list,
        [
          ({ list.contentOffset.y = 50 }, "\(visible)"),
          (
            {
              model.rows.insert(contentsOf: ["new 2", "new 3"], at: 10)
              list.insertRows(at: 10..<12)
              #expect(list.contentOffset.y == (hasHeights ? 55 : 52))
            }, "\(visible)"
          ),
          (
            {
              model.rows.removeSubrange(0..<20)
              list.deleteRows(at: 0..<20)
            }, "\(visible)"
          ),
          (
            {
              model.rows.append(model.rows.remove(at: 0))
              list.moveRow(at: 0, to: 99)
              model.rows.insert(model.rows.remove(at: 80), at: 3)
              list.moveRow(at: 80, to: 3)
            }, "\(visible)"
          ),
          (
            {
              model.rows.insert("below 1", at: list.visibleRows.upperBound)
              list.insertRows(at: list.visibleRows.upperBound..<list.visibleRows.upperBound + 1)
            }, "\(visible)"
          ),
        ])
      #expect(Set(model.measured).count == (hasHeights ? 103 : 0))
      #expect(model.measured.count == (hasHeights ? 103 : 0))
    }
  }

  @Test("rows have their own heights, which are asked for once and guide keys and clicks")
  func heights() throws {
    let model = Model(["a 1", "b 3", "c 0", "d 9", "e 1"])
    model.hasHeights = true
    let list = model.makeList()
    list.selectedRow = 0
    try show(
      list,
      [
        ({ list.becomeFirstResponder() }, "a 1\nb 3"),
        ({ list.window?.sendEvent(.type(.down)) }, "a 1\nb 3"),
        ({ list.window?.sendEvent(.type(.down)) }, "b 3\n\n\nc 0"),
        // A row taller than the list shows its beginning.
        ({ list.window?.sendEvent(.type(.down)) }, "d 9"),
        (
          {
            list.window?.sendEvent(.type(.pageDown))
            #expect(list.selectedRow == 4)
          }, "\n\n\ne 1"
        ),
        ({ list.window?.sendEvent(.type(.home)) }, "a 1\nb 3"),
        (
          {
            list.window?.sendEvent(.press(2, 3))
            #expect(list.selectedRow == 1)
          }, "a 1\nb 3"
        ),
        ({ #expect(list.contentSize.height == 15 && model.measured == model.rows) }, "a 1\nb 3"),
        (
          {
            model.rows = ["x 2", "y 2"]
            list.rowCount = 2
            list.reload()
          }, "x 2\n\ny 2"
        ),
      ])
  }

  @Test("after random changes a list equals a newly made one", arguments: 0..<50)
  func random(_ seed: Int) throws {
    var random = SplitMix64(seed: UInt64(seed))
    let model = Model((0..<Int.random(in: 0...12, using: &random)).map { "row \($0) \($0 % 4)" })
    model.hasHeights = seed.isMultiple(of: 2)
    let list = model.makeList(height: 6)
    try Stage.perform(width: 20, height: 6) { stage in
      stage.logged = { _ in false }
      stage.window.addSubview(list)
      for step in 0..<20 {
        let (kind, first, other) = (
          Int.random(in: 0..<5, using: &random), Int.random(in: 0...20, using: &random),
          Int.random(in: 0...20, using: &random)
        )
        stage.at(step * 50 + 20) {
          let count = model.rows.count
          switch kind {
          case 0, 1:
            let place = min(first, count)
            let new = (0..<other % 4).map { "row \(model.made + $0) \(($0 + other) % 5)" }
            model.made += 4
            model.rows.insert(contentsOf: new, at: place)
            list.insertRows(at: place..<place + new.count)
          case 2:
            let gone = (min(first, other)..<max(first, other)).clamped(to: 0..<count)
            model.rows.removeSubrange(gone)
            list.deleteRows(at: gone)
          case 3 where count > 0:
            let (from, to) = (first % count, other % count)
            model.rows.insert(model.rows.remove(at: from), at: to)
            list.moveRow(at: from, to: to)
          default: list.contentOffset.y = first
          }
        }
        stage.at(step * 50 + 45) {
          let fresh = Model(model.rows)
          fresh.hasHeights = model.hasHeights
          let other = fresh.makeList(height: 6)
          other.contentOffset = list.contentOffset
          #expect(list.contentSize == other.contentSize && list.rowCount == model.rows.count)
          #expect(list.contentOffset == other.contentOffset)
          for row in list.visibleRows { #expect(list.visibleRow(row)?.text == model.rows[row], "\(row)") }
          #expect(list.subviews.count == list.visibleRows.count)
        }
      }
      try stage.run(until: 1100)
    }
  }

  @Test("a list with columns shows titles above its rows, aligns texts, and truncates them with an ellipsis")
  func columns() throws {
    let rows = [["one", "1", "a long text"], ["漢字漢字", "22", "b"], ["three"], ["four", "4", "d"]]
    let list = ListView(frame: Rect(x: 0, y: 0, width: 20, height: 3)) { index, reused in
      let row = reused ?? ListRow()
      row.texts = rows[index]
      return row
    }
    list.columns = [ListColumn("Name", width: 6), ListColumn("N", width: 4, alignment: .right), ListColumn("Text")]
    list.rowCount = rows.count
    try show(
      list, height: 3,
      [
        ({}, "Name      N Text\none       1 a long …\n漢字…    22 b"),
        ({ list.contentOffset.y = 1 }, "Name      N Text\n漢字…    22 b\nthree"),
        (
          {
            list.becomeFirstResponder()
            list.window?.sendEvent(.press(1, 0))
            #expect(list.selectedRow == nil)
            list.window?.sendEvent(.press(1, 1))
            #expect(list.selectedRow == 1)
            list.window?.sendEvent(.type(.end))
          }, "Name      N Text\nthree\nfour      4 d"
        ),
        ({ list.columns[2].alignment = .center }, "Name      N   Text\nthree\nfour      4    d"),
        // If only one row fits, it is a row of the list.
        ({ list.frame.size.height = 1 }, "three"),
        ({ list.columns = [] }, ""),
      ])
  }

  @Test("scroll indicators show the visible part, reach their ends with the contents, and disappear if not needed")
  func indicators() throws {
    let model = Model((0..<40).map { "row \($0)" })
    let list = model.makeList(width: 8)
    list.showsVerticalScrollIndicator = true
    list.columns = [ListColumn("Head")]
    try show(
      list,
      [
        ({}, "Head\nrow 0  ┃\nrow 1  │\nrow 2  │"),
        ({ list.contentOffset.y = 1 }, "Head\nrow 1  │\nrow 2  ┃\nrow 3  │"),
        ({ list.contentOffset.y = 37 }, "Head\nrow 37 │\nrow 38 │\nrow 39 ┃"),
        ({ list.contentOffset.y = 36 }, "Head\nrow 36 │\nrow 37 ┃\nrow 38 │"),
        ({ list.rowCount = 3 }, "Head\nrow 0\nrow 1\nrow 2"),
        (
          {
            list.showsVerticalScrollIndicator = false
            list.rowCount = 40
          }, "Head\nrow 0\nrow 1\nrow 2"
        ),
      ])
    let scroll = ScrollView(frame: Rect(x: 0, y: 0, width: 4, height: 3))
    scroll.addSubview(Label("12345678", frame: Rect(x: 0, y: 0, width: 8, height: 1)))
    scroll.contentSize = Size(width: 8, height: 6)
    scroll.showsVerticalScrollIndicator = true
    scroll.showsHorizontalScrollIndicator = true
    try Stage.perform(width: 4, height: 3) { stage in
      stage.logged = { _ in false }
      stage.window.addSubview(scroll)
      stage.at(50) { #expect(stage.device.text == "123┃\n   │\n━──│") }
      stage.at(60) { scroll.contentOffset = Point(x: 4, y: 0) }
      stage.at(90) { #expect(stage.device.text == "567┃\n   │\n─━─│") }
      try stage.run(until: 120)
    }
  }
}
