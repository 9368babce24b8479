// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay
import RunLoopDisplayTesting

/// A frame on an emulated terminal.
@main @MainActor enum Program {
  static func main() throws {
    let terminal = HeadlessTerminal(size: Size(width: 20, height: 1))
    try terminal.open()
    defer { terminal.close() }
    var canvas = Canvas(size: terminal.size)
    canvas.draw("a frame", at: .zero)
    terminal.present(canvas.grid)
    print("RunLoopDisplayTesting: \(terminal.screen)")
  }
}
