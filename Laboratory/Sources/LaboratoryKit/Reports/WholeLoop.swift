// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import UICatalog

/// The main loop of a running application compared with the one that Xilankong prints, row by row.
struct WholeLoop {
  /// The items of ui-catalog's loop according to its description.
  private let found: [LoopItem]

  /// Runs the example on a new pseudo-terminal; must be called on the main thread.
  init(on bench: Bench) {
    let description = MainActor.assumeIsolated {
      bench.onMainStandIn { rig in
        let terminal = PseudoTerminal(width: 100, height: 30)
        let device = Terminal(input: terminal.application, output: terminal.application, name: "xterm-256color")
        let catalog = UICatalog.Catalog(device: device, isStill: false, trace: nil)
        catalog.prepare()
        return catalog.application.run(on: rig.loop) {
          MainActor.assumeIsolated {
            rig.loop.run(mode: .default, for: .milliseconds(50))
            // A frame is due.
            catalog.application.window.setNeedsDisplay()
            catalog.application.window.setNeedsLayout()
            return rig.loop.debugDescription
          }
        }
      }
    }
    found = Self.items(in: description)
  }

  /// Parses the items in a loop's description, mode by mode.
  static func items(in description: String) -> [LoopItem] {
    var items: [LoopItem] = []
    var mode: String?
    for line in description.split(separator: "\n") {
      if let name = line.firstRange(of: "{name = ").map({ line[$0.upperBound...] }) {
        mode = String(name.prefix { $0 != "," })
      }
      guard let mode, let kind = kind(of: line) else { continue }
      let order = value("order = ", in: line).flatMap { Int($0) }
      items.append(
        LoopItem(
          mode: mode, kind: kind, order: kind == .timer ? nil : order ?? 0,
          activities: value("activities = ", in: line).map(String.init)))
    }
    return items
  }

  private static func kind(of line: Substring) -> LoopItem.Kind? {
    if line.contains("<RunLoop.Observer ") { return .observer }
    if line.contains("<Timer ") { return .timer }
    if line.contains("version = 1") { return .source1 }
    return line.contains("version = 0") ? .source0 : nil
  }

  private static func value(_ name: String, in line: Substring) -> Substring? {
    line.firstRange(of: name).map { line[$0.upperBound...].prefix { $0 != "," && $0 != "}" } }
  }

  /// Whether a row matches the loop: its item exists, or is missing as expected.
  private func holds(_ row: ApplicationLoopRow) -> Bool {
    let isThere = found.contains(row.item)
    switch row.here {
    case .same: return isThere
    case .missing:
      // Another row may have an item of the same kind and order.
      return !isThere || ApplicationLoopRow.all.contains { $0.item == row.item && $0.here != row.here }
    }
  }

  /// Whether every row matches.
  var holds: Bool { !found.isEmpty && ApplicationLoopRow.all.allSatisfy(holds) }

  /// The rows, in lines of at most a hundred columns.
  var text: String {
    var lines = [
      "An application's main loop: what Xilankong's has, and what ui-catalog's has in its place."
    ]
    let common = ApplicationLoopRow.commonModes
    lines += ["", "the common items, in " + common.joined(separator: " and ")]
    for (first, second) in zip(rows(of: common[0]), rows(of: common[1])) { lines += self.lines(first, holds(second)) }
    var mode = ""
    for row in ApplicationLoopRow.others {
      if row.item.mode != mode { lines += ["", row.item.mode] }
      mode = row.item.mode
      lines += self.lines(row, true)
    }
    let rows = ApplicationLoopRow.all
    let same = rows.filter { if case .same = $0.here { holds($0) } else { false } }.count
    let added = Set(found.filter { item in !rows.contains { $0.item == item } && item.kind == .observer })
    lines += ["", "only here, in the common modes:"]
    for item in added.sorted(by: { ($0.order ?? 0, $0.mode) < ($1.order ?? 0, $1.mode) }) where item.mode == common[0] {
      lines.append(head(of: item) + (ApplicationLoopRow.additions[item.order ?? 0] ?? "an item without a name"))
    }
    lines += [
      "",
      "\(same) of \(rows.count) rows are the same in mode, kind, order and activities; the others are missing, as said.",
    ]
    if !holds { lines.append("The loop is not as it is said here.") }
    return lines.joined(separator: "\n")
  }

  private func rows(of mode: String) -> [ApplicationLoopRow] { ApplicationLoopRow.all.filter { $0.item.mode == mode } }

  /// Returns a row in two lines.
  private func lines(_ row: ApplicationLoopRow, _ alsoHolds: Bool) -> [String] {
    let wrong = holds(row) && alsoHolds ? "" : "  (it is not so)"
    let here =
      switch row.here {
      case .same(let text): "  = \(text)"
      case .missing(let text): "  - missing: \(text)"
      }
    return [head(of: row.item) + row.name, "    " + here + wrong]
  }

  private func head(of item: LoopItem) -> String {
    let order = item.order.map { "\($0)" } ?? ""
    return "  \(item.kind.rawValue.padded(to: 10))\(order.padded(to: 13))\((item.activities ?? "").padded(to: 9))"
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
