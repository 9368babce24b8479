// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopTransactions

/// The cost of a frame for the main thread when nodes are on the screen.
let nodeGates: [Gate] = [
  Gate(name: "frame beside a list of nodes", count: 1000) { count, measure in
    MainActor.assumeIsolated {
      let window = Window()
      let label = Label("text", frame: Rect(x: 0, y: 0, width: 40, height: 1))
      let list = NodeListView(frame: Rect(x: 0, y: 1, width: 80, height: 23)) { TextContent("row \($0)") }
      // No more rows than are visible, so that workers have no rows to prepare.
      list.rowCount = 23
      window.addSubview(label)
      window.addSubview(list)
      var isOdd = false
      makeFrames(count, measure, window) {
        isOdd.toggle()
        label.text = isOdd ? "odd" : "even"
      }
    }
  },
  Gate(name: "frame in which ten nodes move", count: 1000) { count, measure in
    MainActor.assumeIsolated {
      let window = Window()
      let nodes = (0..<10).map {
        DisplayNode(TextContent("node"), frame: Rect(x: 0, y: 2 * $0, width: 4, height: 1))
      }
      for node in nodes { window.addSubview(node.view) }
      var isOdd = false
      makeFrames(count, measure, window) {
        isOdd.toggle()
        for (row, node) in nodes.enumerated() {
          node.frame = Rect(x: isOdd ? 1 : 0, y: 2 * row, width: 4, height: 1)
          node.background = isOdd ? .reversed : .plain
        }
      }
    }
  },
]
