// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The views of nodes", .timeLimit(.minutes(20)))
@MainActor
struct NodeViewTests {
  @Test("a node's view is made on request, and subnode views when they are visible in a window")
  func late() throws {
    try NodeStage.perform { stage in
      let (node, seen, hidden) = onNewThread {
        let nodes = (stage.node(), stage.node(TextContent("seen")), stage.node(TextContent("more"), y: 1))
        nodes.0.addSubnode(nodes.1)
        nodes.0.addSubnode(nodes.2)
        nodes.0.frame = Rect(x: 1, y: 1, width: 10, height: 2)
        nodes.2.isHidden = true
        return nodes
      }
      let loaded = { [node, seen, hidden].map { $0.isViewLoaded ? "1" : "0" }.joined() }
      try stage.turn()
      #expect(loaded() == "000")
      let view = node.view
      #expect(view === node.view && view.frame == node.frame)
      try stage.turn()
      #expect(loaded() == "100")
      stage.window.addSubview(view)
      #expect(loaded() == "100")
      try stage.turn()
      #expect(loaded() == "110" && stage.text == "\n seen")
      onNewThread { hidden.isHidden = false }
      try stage.turn()
      #expect(loaded() == "111" && stage.text == "\n seen\n more")
    }
  }

  @Test("tree changes on another thread reach the views after one turn")
  func tree() throws {
    try NodeStage.perform { stage in
      let nodes = (0..<4).map { stage.node(TextContent("\($0)"), x: $0, width: 2) }
      let (left, right) = (stage.node(width: 12), stage.node(y: 1, width: 12))
      for node in [left, right] { stage.window.addSubview(node.view) }
      onNewThread {
        for node in nodes { left.addSubnode(node) }
        right.insertSubnode(nodes[3], at: 5)
        right.insertSubnode(nodes[2], at: -5)
        nodes[0].removeFromSupernode()
        right.addSubnode(nodes[0])
        left.insertSubnode(nodes[2], at: 0)
      }
      try stage.turn()
      #expect(stage.text == " 12\n0  3")
      #expect(left.view.subviews == [nodes[2].view, nodes[1].view])
      #expect(right.view.subviews == [nodes[3].view, nodes[0].view])
      #expect(left.subnodes.map { ObjectIdentifier($0) } == [nodes[2], nodes[1]].map { ObjectIdentifier($0) })
      #expect(nodes[0].supernode === right)
      onNewThread { for node in nodes { node.removeFromSupernode() } }
      try stage.turn()
      #expect(stage.text == "" && left.view.subviews == [] && nodes[0].supernode == nil)
    }
  }

  @Test("views added directly to a node's view stay above those of its subnodes")
  func ownSubviews() throws {
    try NodeStage.perform { stage in
      let node = stage.node(width: 12)
      let label = Label("top", frame: Rect(x: 0, y: 0, width: 3, height: 1))
      node.view.addSubview(label)
      stage.window.addSubview(node.view)
      node.addSubnode(stage.node(TextContent("below")))
      try stage.turn()
      #expect(stage.text == "topow" && node.view.subviews.last == label)
      node.subnodes[0].removeFromSupernode()
      try stage.turn()
      #expect(stage.text == "top")
    }
  }

  @Test("a layout sets the frames of subnodes, and again when one of them needs another size")
  func layout() throws {
    try NodeStage.perform { stage in
      let (title, text) = (stage.node(TextContent("title")), stage.node(TextContent("text")))
      let node = stage.node(
        StackContent(.vertical, alignment: .start, [SubnodeContent(title), SubnodeContent(text)]), width: 12)
      node.frame.size.height = 4
      node.addSubnode(title)
      node.addSubnode(text)
      stage.window.addSubview(node.view)
      try stage.turn()
      #expect(stage.text == "title\ntext")
      onNewThread { title.content = TextContent("a longer title") }
      try stage.turns { node.isUpToDate && title.isUpToDate && text.frame.minY == 2 }
      try stage.turn()
      #expect(stage.text == "a longer\ntitle\ntext")
    }
  }

  @Test("the layouts of all nodes around a node are made again when it needs another size")
  func nestedLayout() throws {
    try NodeStage.perform { stage in
      let (title, text) = (stage.node(TextContent("title")), stage.node(TextContent("text")))
      let row = stage.node(StackContent(.vertical, alignment: .start, [SubnodeContent(title)]))
      row.addSubnode(title)
      let node = stage.node(
        StackContent(.vertical, alignment: .start, [SubnodeContent(row), SubnodeContent(text)]), width: 12)
      node.frame.size.height = 4
      node.addSubnode(row)
      node.addSubnode(text)
      stage.window.addSubview(node.view)
      try stage.turns { [title, text, row, node].allSatisfy(\.isUpToDate) }
      try stage.turn()
      #expect(stage.text == "title\ntext")
      onNewThread { title.content = TextContent("a longer title") }
      try stage.turns { [title, text, row, node].allSatisfy(\.isUpToDate) }
      try stage.turn()
      #expect(stage.text == "a longer\ntitle\ntext")
    }
  }

  @Test("a frame that a superview sets becomes the node's frame")
  func superviewsFrame() throws {
    try NodeStage.perform { stage in
      let holder = Holder(frame: Rect(x: 0, y: 0, width: 7, height: 2))
      let node = stage.node(TextContent("one two three"))
      holder.addSubview(node.view)
      stage.window.addSubview(holder)
      try stage.turn()
      #expect(node.frame == Rect(x: 0, y: 0, width: 7, height: 2) && stage.text == "one two\nthree")
    }
  }

  /// Lets its content fill it.
  private final class Holder: View {
    override func layoutSubviews() { for view in subviews { view.frame = bounds } }
  }

  @Test("a window keeps the nodes whose views it contains, and releases them with itself")
  func window() throws {
    try NodeStage.perform { stage in
      let released = Log()
      @MainActor func add() -> WeakBox<DisplayNode> {
        let token = Token(released)
        let node = stage.node(
          DrawnContent { canvas, _ in
            token.touch()
            canvas.draw("kept", at: .zero)
          })
        stage.window.addSubview(node.view)
        return WeakBox(node)
      }
      let node = add()
      try stage.turn()
      #expect(stage.text == "kept" && node.object != nil)
      node.object?.view.removeFromSuperview()
      try stage.turn()
      #expect(node.object == nil && released.text == "released")

      let other = Window(frame: Rect(x: 0, y: 0, width: 5, height: 1))
      weak var otherNode: DisplayNode?
      do {
        let node = stage.node()
        otherNode = node
        other.addSubview(node.view)
      }
      #expect(otherNode != nil)
      other.subviews[0].removeFromSuperview()
      try stage.turn()
      #expect(otherNode == nil)
    }
  }

  /// Reports the thread on which it is released.
  private final class Guest: View {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) {
      self.body = body
      super.init()
    }
    deinit { body() }
  }

  @Test("views of nodes released on a worker are released on the main thread, a few per turn")
  func released() throws {
    try NodeStage.perform { stage in
      let (thread, time) = (stage.thread, stage.time)
      let releases = Box<[Int32]>([])
      var nodes: ContiguousArray<DisplayNode>? = ContiguousArray(
        (0..<100).map { _ in
          let node = stage.node()
          node.view.addSubview(
            Guest {
              releases.update { $0.append(RunLoop.callingThreadID) }
              // So that a turn has time for only one batch.
              time.spend(.milliseconds(1))
            })
          return node
        })
      let box = Box(nodes)
      nodes = nil
      onNewThread { box.value = nil }
      #expect(releases.value.isEmpty)
      var turns: [Int] = []
      let loop = stage.application.loop
      let observer = RunLoop.Observer(activities: .beforeWaiting, order: 1) { _, _ in
        MainActor.assumeIsolated { turns.append(releases.value.count) }
      }
      loop.add(observer, forMode: .default)
      try stage.turns { releases.value.count == 100 }
      #expect(releases.value.allSatisfy { $0 == thread })
      #expect(turns.filter { $0 > 0 }.prefix(7) == [16, 32, 48, 64, 80, 96, 100])
    }
  }

  @Test("a node's shown content is released at the end of the turn")
  func drawings() throws {
    try NodeStage.perform { stage in
      let node = stage.node(TextContent("a"))
      stage.window.addSubview(node.view)
      try stage.turn()
      let log = stage.log
      let before = WeakBox(node.shownDrawing)
      for (order, name) in [(TurnOrder.poolPop - 1, "before"), (Int(Int32.max) + 1, "after")] {
        stage.application.loop.add(
          RunLoop.Observer(activities: [.beforeWaiting, .exit], order: order) { _, _ in
            let isUpToDate = node.isUpToDate
            if isUpToDate { log.write("\(name):\(before.object == nil ? "gone" : "kept")") }
          }, forMode: .default)
      }
      node.content = TextContent("b")
      try stage.turns { node.isUpToDate }
      try stage.turn()
      #expect(log.text.hasPrefix("before:kept after:gone"))
    }
  }

  @Test("a node made and released on a worker never gets a view")
  func neverSeen() throws {
    try NodeStage.perform { stage in
      let released = Log()
      onNewThread {
        let token = Token(released)
        let node = stage.node(DrawnContent { _, _ in token.touch() })
        node.addSubnode(stage.node())
        node.isHidden = true
      }
      #expect(released.text == "released")
    }
  }
}
