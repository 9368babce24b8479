// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// Text on a grid of cells, or the reason why there is no terminal.
@main @MainActor enum Program {
  static func main() {
    var canvas = Canvas(size: Size(width: 20, height: 1))
    canvas.draw("three cells: 世!", at: .zero)
    let terminal = Terminal()
    do throws(DisplayError) {
      try terminal.open()
      terminal.present(canvas.grid)
      terminal.close()
    } catch {
      print("RunLoopDisplay: \(canvas.grid.text(row: 0)) \(error)")
    }
  }
}
