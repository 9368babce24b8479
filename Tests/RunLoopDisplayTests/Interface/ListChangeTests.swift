// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("A list that changes while it calls the program", .timeLimit(.minutes(20)))
@MainActor
struct ListChangeTests {
  private final class ReportingRow: ListRow {
    var report: ((ReportingRow) -> Void)?

    override func selectionDidChange() {
      super.selectionDidChange()
      report?(self)
    }
  }

  /// The rows of a list, where a final digit is the row's height.
  @MainActor
  private final class Model {
    var rows: [String]
    var measured: [String] = []
    var report: ((ReportingRow) -> Void)?

    init(_ rows: [String]) { self.rows = rows }

    func makeList(height: Int, hasHeights: Bool = false) -> ListView {
      let list = ListView(frame: Rect(x: 0, y: 0, width: 12, height: height)) { [unowned self] index, reused in
        let row = reused as? ReportingRow ?? ReportingRow()
        row.text = rows[index]
        row.report = { [weak self] in self?.report?($0) }
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

    func insert(_ new: [String], at index: Int, _ list: ListView) {
      rows.insert(contentsOf: new, at: index)
      list.insertRows(at: index..<index + new.count)
    }

    func delete(_ range: Range<Int>, _ list: ListView) {
      rows.removeSubrange(range)
      list.deleteRows(at: range)
    }

    func move(_ index: Int, to new: Int, _ list: ListView) {
      rows.insert(rows.remove(at: index), at: new)
      list.moveRow(at: index, to: new)
    }
  }

  /// Shows a list in a window, and passes a closure that makes turns.
  private func show(_ list: ListView, _ body: (_ text: () throws -> String) throws -> Void) throws {
    try VirtualTime.asMain { time in
      let device = FakeDevice(width: list.frame.size.width, height: list.frame.size.height)
      let window = Window()
      window.addSubview(list)
      let application = Application(device: device, window: window, frameInterval: .zero)
      try application.start()
      try body {
        try time.advance(by: .milliseconds(1))
        return device.text
      }
      application.finish()
    }
  }

  @Test("a selection handler that changes the rows again finds the list as it is after the change")
  func handler() throws {
    let model = Model((0..<100).map { "row \($0)" })
    let list = model.makeList(height: 4)
    try show(list) { (text: () throws -> String) throws in
      list.contentOffset.y = 50
      list.selectedRow = 45
      _ = try text()
      var offsets: [Int] = []
      list.selectionDidChange = { [unowned list, unowned model] _ in
        offsets.append(list.contentOffset.y)
        // Between the visible rows, which now begin at number 40.
        model.insert(["new"], at: 42, list)
      }
      model.delete(40..<50, list)
      #expect(try text() == "row 50\nrow 51\nnew\nrow 52" && offsets == [40])
    }
  }

  @Test("a row that changes the list when deselected finds the other rows under their numbers")
  func rowHandler() throws {
    let model = Model(["a", "b", "c", "d"])
    let list = model.makeList(height: 4)
    try show(list) { (text: () throws -> String) throws in
      list.selectedRow = 1
      _ = try text()
      model.report = { [unowned list, unowned model] row in
        guard !row.isSelected else { return }
        model.report = nil
        model.insert(["x"], at: 0, list)
      }
      model.delete(1..<2, list)
      #expect(try text() == "x\na\nc\nd")
      #expect(list.selectedRow == 2 && list.rows.map(\.isSelected) == [false, false, true, false])
    }
  }

  @Test("rows moved before they are measured get the heights of the current model, each asked for once")
  func unknownHeights() throws {
    for steps in 0..<3 {
      let model = Model(["a 1", "b 3", "c 1", "d 1"])
      let list = model.makeList(height: 8, hasHeights: true)
      try show(list) { (text: () throws -> String) throws in
        if steps > 0 { #expect(try text() == "a 1\nb 3\n\n\nc 1\nd 1") }
        if steps == 2 { list.reload() }
        model.measured = []
        model.move(0, to: 3, list)
        #expect(try text() == "b 3\n\n\nc 1\nd 1\na 1")
        #expect(model.measured == (steps == 1 ? [] : ["b 3", "c 1", "d 1", "a 1"]))
        // Some heights are known already.
        model.measured = []
        model.rows += ["e 2", "f 1"]
        list.rowCount = 6
        model.move(4, to: 1, list)
        model.move(0, to: 5, list)
        #expect(try text() == "e 2\n\nc 1\nd 1\na 1\nf 1\nb 3")
        #expect(model.measured == ["e 2", "f 1", "b 3"])
      }
    }
  }

  @Test("content under a scroll indicator or list header can be scrolled into view")
  func covered() throws {
    let scroll = ScrollView(frame: Rect(x: 0, y: 0, width: 4, height: 3))
    for row in 0..<6 { scroll.addSubview(Label("1234567\(row)", frame: Rect(x: 0, y: row, width: 8, height: 1))) }
    scroll.contentSize = Size(width: 8, height: 6)
    scroll.showsVerticalScrollIndicator = true
    scroll.showsHorizontalScrollIndicator = true
    try Stage.perform(width: 4, height: 3) { stage in
      stage.logged = { _ in false }
      stage.window.addSubview(scroll)
      stage.at(50) { #expect(stage.device.text == "123┃\n123│\n━──│") }
      stage.at(60) { scroll.contentOffset = Point(x: .max, y: .max) }
      stage.at(90) { #expect(stage.device.text == "674│\n675│\n──━┃") }
      stage.at(100) {
        scroll.contentOffset = .zero
        scroll.scrollRectToVisible(Rect(x: 3, y: 2, width: 1, height: 1))
        #expect(scroll.contentOffset == Point(x: 1, y: 1))
        scroll.becomeFirstResponder()
        stage.window.sendEvent(.type(.pageDown))
        #expect(scroll.contentOffset == Point(x: 1, y: 3))
        // As many columns as fit without the indicator, which itself needs one.
        scroll.contentSize = Size(width: 4, height: 3)
        #expect(scroll.contentOffset == Point(x: 1, y: 3))
      }
      stage.at(150) {
        #expect(scroll.contentOffset == .zero)
        scroll.contentSize = Size(width: 4, height: 4)
        scroll.contentOffset = Point(x: .max, y: .max)
        #expect(scroll.contentOffset == Point(x: 1, y: 2))
      }
      try stage.run(until: 160)
    }
    let model = Model((0..<6).map { "1234567\($0)" })
    let list = model.makeList(height: 4)
    list.frame.size.width = 4
    list.contentSize.width = 8
    list.showsVerticalScrollIndicator = true
    list.showsHorizontalScrollIndicator = true
    try show(list) { (text: () throws -> String) throws in
      list.scrollToRow(5)
      list.contentOffset.x = .max
      #expect(try text() == "673│\n674│\n675┃\n──━┃")
      list.contentOffset.x = 0
      list.window?.sendEvent(.press(1, 3))
      #expect(list.selectedRow == nil)
      list.columns = [ListColumn("Head")]
      list.scrollRectToVisible(Rect(x: 0, y: 1 + 2, width: 1, height: 1))
      #expect(try text().hasPrefix("Hea\n123│\n123┃\n") && list.visibleRows == 2..<4)
      list.scrollRectToVisible(Rect(x: 0, y: 1 + 5, width: 1, height: 1))
      _ = try text()
      #expect(list.visibleRows == 4..<6)
    }
  }

  @Test("list columns stay aligned with the contents when the list scrolls sideways")
  func sideways() throws {
    let list = ListView(frame: Rect(x: 0, y: 0, width: 12, height: 3)) { index, reused in
      let row = reused ?? ListRow()
      row.texts = ["a\(index)", "b\(index)"]
      return row
    }
    list.columns = [ListColumn("A"), ListColumn("B")]
    list.contentSize.width = 20
    list.rowCount = 2
    try show(list) { (text: () throws -> String) throws in
      #expect(try text() == "A         B\na0        b0\na1        b1")
      list.contentOffset.x = 4
      #expect(try text() == "      B\n      b0\n      b1")
      list.contentSize.width = 0
      #expect(try text() == "A     B\na0    b0\na1    b1")
    }
  }
}
