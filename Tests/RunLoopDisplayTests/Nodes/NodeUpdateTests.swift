// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The updates of nodes", .timeLimit(.minutes(20)))
@MainActor
struct NodeUpdateTests {
  @Test("when eight threads set properties, the view gets the last values after one update per turn")
  func eightThreads() throws {
    try NodeStage.perform(width: 40, height: 10) { stage in
      let nodes = (0..<8).map { _ in stage.node() }
      for node in nodes { stage.window.addSubview(node.view) }
      try stage.turn()
      let before = nodes.map(\.view.updateCount)
      // Each thread has one property of every node to itself, so the last value is known.
      let threads = (0..<8).map { thread in
        startThread {
          for value in 1...200 {
            for node in nodes {
              switch thread {
              case 0: node.isHidden = value % 2 == 1
              case 1: node.background = Style(foreground: .palette(UInt8(value)))
              case 2: node.name = "\(value)"
              case 3: node.isUserInteractionEnabled = value % 2 == 1
              case 4: node.placeholder = NodePlaceholder(value % 2 == 0 ? "a" : "b")
              case 5: node.frame = Rect(x: value, y: value, width: value, height: 1)
              case 6: node.content = TextContent("\(value)")
              default: node.setNeedsDisplay()
              }
            }
          }
        }
      }
      for thread in threads { thread.result() }
      #expect(nodes.allSatisfy { $0.view.name == nil })
      try stage.turn()
      for (node, before) in zip(nodes, before) {
        let view = node.view
        #expect(view.updateCount == before + 1)
        #expect(!view.isHidden && !view.isUserInteractionEnabled && view.name == "200")
        #expect(view.background == Style(foreground: .palette(200)))
        #expect(view.frame == Rect(x: 200, y: 200, width: 200, height: 1))
      }
      try stage.turns { nodes.allSatisfy(\.isUpToDate) }
      #expect(nodes.allSatisfy { $0.view.layer.contents?.text(row: 0) == "200" })
    }
  }

  @Test("changes made by an update belong to the same turn, and updates precede the commit")
  func drained() throws {
    try NodeStage.perform { stage in
      // Each layout changes its subnode, whose layout then changes the next one.
      var node = stage.node(TextContent("end"))
      let innermost = node
      for _ in 0..<20 {
        let outer = stage.node(StackContent(.vertical, [SubnodeContent(node)]), width: 3)
        outer.addSubnode(node)
        node = outer
      }
      stage.window.addSubview(node.view)
      let frames = stage.device.presentations
      try stage.turn()
      #expect(stage.text == "end" && innermost.isUpToDate && stage.device.presentations == frames + 1)
    }
  }

  @Test("an update of a visible node wakes a sleeping loop, and an update of an invisible one does not")
  func wakes() throws {
    try NodeStage.perform { stage in
      let (time, loop, log) = (stage.time, stage.application.loop, stage.log)
      let node = stage.node(TextContent("a"))
      let unseen = stage.node(TextContent("b"))
      stage.window.addSubview(node.view)
      try stage.turn()
      loop.add(
        RunLoop.Observer(activities: .afterWaiting) { _, _ in log.write("awake@\(time.elapsed / .milliseconds(1))") },
        forMode: .default)
      time.at(.milliseconds(10)) { unseen.content = TextContent("c") }
      time.at(.milliseconds(20)) { node.isHidden = true }
      try time.advance(by: .milliseconds(30))
      #expect(log.text.contains("awake@20.0") && !log.text.contains("awake@10.0"))
    }
  }

  @Test("in random programs on eight threads every node ends up showing its last content, and nothing is lost")
  func programs() throws {
    try NodeStage.perform(width: 40, height: 10) { stage in
      let roots = (0..<4).map { stage.node(y: $0 * 2, width: 40) }
      for root in roots {
        root.frame.size.height = 2
        stage.window.addSubview(root.view)
      }
      let nodes = (0..<24).map { stage.node(TextContent("\($0)"), x: $0, width: 6) }
      let made = Counter()
      let released = Counter()
      let running = Counter()
      running.add(8)
      let threads = (0..<8).map { thread in
        startThread {
          var random = SplitMix64(seed: UInt64(thread))
          for step in 0..<400 {
            let node = nodes[random.below(nodes.count)]
            switch random.below(10) {
            case 0: roots[random.below(4)].insertSubnode(node, at: random.below(6))
            case 1: node.removeFromSupernode()
            case 2: node.isHidden = random.oneIn(3)
            case 3: node.frame = Rect(x: random.below(40), y: random.below(3), width: 1 + random.below(6), height: 1)
            case 4: node.background = random.oneIn(2) ? nil : Style(background: .blue)
            case 5:
              // One node is dropped directly, or along with its supernode.
              made.add()
              let token = Token { released.add() }
              let content = DrawnContent { canvas, _ in
                token.touch()
                canvas.draw("x", at: .zero)
              }
              let guest = stage.node(content, x: random.below(40))
              roots[random.below(4)].addSubnode(guest)
              if random.oneIn(2) { guest.removeFromSupernode() }
            case 6:
              let subnodes = roots[random.below(4)].subnodes
              for guest in subnodes where !nodes.contains(where: { $0 === guest }) { guest.removeFromSupernode() }
            default: node.content = TextContent("\(thread).\(step)")
            }
          }
          running.add(-1)
        }
      }
      try stage.turns { running.value == 0 }
      for thread in threads { thread.result() }
      for root in roots {
        for guest in root.subnodes where !nodes.contains(where: { $0 === guest }) { guest.removeFromSupernode() }
      }
      for (index, node) in nodes.enumerated() {
        node.isHidden = false
        node.frame = Rect(x: index % 6 * 6, y: 0, width: 6, height: 1)
        if node.supernode == nil { roots[index % 4].addSubnode(node) }
      }
      try stage.turns {
        nodes.allSatisfy(\.isUpToDate) && released.value == made.value && stage.group.countUnderWay == 0
      }
      #expect(made.value > 100)
      for node in nodes {
        #expect(node.view.layer.contents?.text(row: 0) == (node.content as? TextContent)?.text)
        #expect(node.view.superview === node.supernode?.view)
        #expect(node.view.frame == node.frame && node.view.background == node.background)
      }
      #expect(roots.allSatisfy { $0.view.subviews == $0.subnodes.map(\.view) })
    }
  }
}
