// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Random changes of a list", .timeLimit(.minutes(20)))
@MainActor
struct RandomListTests {
  private struct Row {
    let id: Int
    var version = 0
    var height: Int
    var text: String { "\(id).\(version)" }
  }

  /// The expected contents of the list, and a list to which the same changes are applied.
  @MainActor
  private final class Model {
    var random: SplitMix64
    var rows: [Row] = []
    var hasHeights = false
    var selected: Int?
    var list: ListView?
    /// Differences that were found during changes.
    private(set) var faults: [String] = []
    private var made = 0
    private var depth = 0
    /// Whether a key press makes the list select.
    private var isKeyPressed = false
    var changesWhileAsked = false

    init(seed: Int) { random = SplitMix64(seed: UInt64(seed)) }

    private func expect(_ condition: Bool, _ text: @autoclosure () -> String) {
      if !condition { faults.append(text()) }
    }

    func row(_ index: Int) -> Row {
      expect(rows.indices.contains(index), "row \(index) of \(rows.count) was asked for")
      return rows.indices.contains(index) ? rows[index] : Row(id: -1, height: 1)
    }

    func provide(_ index: Int) -> String {
      defer { if changesWhileAsked, depth == 0, random.oneIn(40) { change() } }
      return row(index).text
    }

    private func makeRows(_ count: Int) -> [Row] {
      (0..<count).map { _ in
        made += 1
        return Row(id: made, height: 1 + random.below(4))
      }
    }

    private var selection: Int? { selected.flatMap { id in rows.firstIndex { $0.id == id } } }

    /// The user's handler, which may change the list again.
    func selectionDidChange(_ index: Int?) {
      if isKeyPressed { selected = index.map { row($0).id } }
      isKeyPressed = false
      expect(index == selection && list?.selectedRow == index, "\(index ?? -1) was selected, not \(selection ?? -1)")
      guard depth < 3, random.oneIn(2) else { return }
      change()
    }

    func change() {
      guard let list else { return }
      depth += 1
      defer { depth -= 1 }
      let place = random.below(rows.count + 1)
      switch random.below(10) {
      case 0, 1:
        let new = makeRows(random.below(4))
        rows.insert(contentsOf: new, at: place)
        list.insertRows(at: place..<place + new.count)
      case 2:
        let gone = place..<min(rows.count, place + random.below(6))
        let isLost = selection.map(gone.contains) ?? false
        rows.removeSubrange(gone)
        if isLost { selected = rows.isEmpty ? nil : rows[min(gone.lowerBound, rows.count - 1)].id }
        list.deleteRows(at: gone)
      case 3 where place < rows.count:
        let other = random.below(rows.count)
        rows.insert(rows.remove(at: place), at: other)
        list.moveRow(at: place, to: other)
      case 4:
        for index in rows.indices {
          rows[index].version += 1
          rows[index].height = 1 + random.below(4)
        }
        list.reload()
      case 5:
        hasHeights.toggle()
        list.heightForRow = hasHeights ? { [unowned self] in row($0).height } : nil
      case 6 where place < rows.count:
        selected = rows[place].id
        list.selectedRow = place
      case 7: if random.oneIn(2) { list.scrollToRow(place) } else { list.contentOffset.y = random.below(40) }
      case 8:
        let count = random.below(12)
        let isLost = (selection ?? -1) >= count
        rows = count <= rows.count ? Array(rows[..<count]) : rows + makeRows(count - rows.count)
        if isLost { selected = rows.last?.id }
        list.rowCount = count
      case 9:
        isKeyPressed = true
        let keys: [KeyEvent.Key] = [.up, .down, .pageUp, .pageDown, .home, .end]
        list.keyPressed(KeyEvent(keys[random.below(6)]))
        isKeyPressed = false
      default: break
      }
    }

    /// Returns how the list differs from the model, or nil if it does not.
    func difference(_ rows: [String]) -> String? {
      guard let list else { return nil }
      let (fixed, height) = (list.fixedRows, list.room.height)
      var shown = rows.dropFirst(fixed)
      while shown.last == "" { shown.removeLast() }
      return difference(shown.joined(separator: "\n"), fixed, height, list)
    }

    private func difference(_ shown: String, _ fixed: Int, _ height: Int, _ list: ListView) -> String? {
      let lines = rows.flatMap { [$0.text] + Array(repeating: "", count: hasHeights ? $0.height - 1 : 0) }
      var wanted = Array(lines.dropFirst(list.contentOffset.y).prefix(height))
      while wanted.last == "" { wanted.removeLast() }
      let visible = list.visibleRows.map { list.visibleRow($0) }
      if !faults.isEmpty { return faults.joined(separator: ", ") }
      if shown != wanted.joined(separator: "\n") { return "\(shown.debugDescription) instead of \(wanted)" }
      if list.contentSize.height != fixed + lines.count { return "\(list.contentSize.height) lines of \(lines.count)" }
      if list.contentOffset.y > max(0, lines.count - height) { return "the offset \(list.contentOffset.y)" }
      if list.selectedRow != selection { return "the selection \(list.selectedRow ?? -1), not \(selection ?? -1)" }
      let others = list.subviews.count { !($0 is ListRow) }
      let isComplete = list.subviews.count == visible.count + others && !visible.contains { $0 == nil }
      if !isComplete { return "views \(visible)" }
      for case let row? in visible where row.isSelected != (row.index == selection) { return "the row \(row.index)" }
      return nil
    }
  }

  @Test("several changes in a turn, by handlers or while hidden, keep the list equal to its model", arguments: 0..<120)
  func changes(_ seed: Int) throws {
    let height = 6
    try NodeStage.perform(width: 12, height: height) { stage in
      let model = Model(seed: seed)
      let frame = Rect(x: 0, y: 0, width: 12, height: height)
      let list =
        seed.isMultiple(of: 3)
        ? NodeListView(frame: frame, group: stage.group, workers: stage.workers) { [unowned model] index in
          TextContent(model.provide(index))
        }
        : ListView(frame: frame) { [unowned model] index, reused in
          let row = reused ?? ListRow()
          row.text = model.provide(index)
          return row
        }
      model.list = list
      model.changesWhileAsked = seed % 4 == 1
      if seed % 4 == 2 { list.columns = [ListColumn("Head")] }
      list.showsVerticalScrollIndicator = seed % 8 > 5
      list.selectionDidChange = { [unowned model] in model.selectionDidChange($0) }
      stage.window.addSubview(list)
      for step in 0..<60 {
        if model.random.oneIn(6) { stage.device.isReadyForFrame = false }
        for _ in 0...model.random.below(3) { model.change() }
        try stage.turn()
        guard !model.random.oneIn(3) else { continue }
        if !stage.device.isReadyForFrame { stage.device.becomeReady() }
        try stage.turns { stage.group.countUnderWay == 0 }
        try stage.turn()
        let rows = (0..<height).map { y in
          let cells = (0..<11).map { stage.device.shown[$0, y].character.map(String.init) ?? "" }
          return cells.joined().trimmingSuffix { $0 == " " }
        }
        let difference = model.difference(rows)
        #expect(difference == nil, "step \(step)")
        if difference != nil { return }
      }
    }
  }
}

extension String {
  /// The text without the trailing characters for which a condition holds.
  fileprivate func trimmingSuffix(while condition: (Character) -> Bool) -> String {
    String(self[..<(lastIndex { !condition($0) }.map(index(after:)) ?? startIndex)])
  }
}
