// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The drawing of nodes", .timeLimit(.minutes(20)))
@MainActor
struct NodeDrawingTests {
  @Test("in the first frame the main thread draws visible nodes for up to 4 ms, and the rest show placeholders")
  func budget() throws {
    try NodeStage.perform { stage in
      let log = stage.log
      let time = stage.time
      let hold = Hold()
      let nodes = (0..<4).map { row in
        let node = stage.node(
          Drawn("row \(row)") { [thread = stage.thread] _ in
            guard RunLoop.callingThreadID == thread else { return hold.occupy() }
            log.write("main:\(row)")
            time.spend(.milliseconds(2))
          }, y: row)
        node.placeholder = NodePlaceholder("-")
        stage.window.addSubview(node.view)
        return node
      }
      try stage.turn()
      #expect(log.text == "main:0 main:1")
      #expect(stage.text == "row 0\nrow 1\n-----\n-----")
      hold.released.open()
      try stage.turns { nodes.allSatisfy(\.isUpToDate) }
      #expect(stage.text == "row 0\nrow 1\nrow 2\nrow 3")
      #expect(log.text == "main:0 main:1")
    }
  }

  @Test("contents slower than the interval between budgets earn no new one, and one is drawn here")
  func slowContents() throws {
    try NodeStage.perform { stage in
      let (log, time) = (stage.log, stage.time)
      let nodes = (0..<4).map { row in
        let node = stage.node(
          Drawn("row \(row)") { [thread = stage.thread] _ in
            guard RunLoop.callingThreadID == thread else { return }
            log.write("main:\(row)")
            time.spend(.milliseconds(17))
          }, y: row)
        stage.window.addSubview(node.view)
        return node
      }
      try stage.turn()
      #expect(log.text == "main:0")
      try stage.turns { nodes.allSatisfy(\.isUpToDate) }
      #expect(stage.text == "row 0\nrow 1\nrow 2\nrow 3")
    }
  }

  @Test("each turn has its own drawing budget")
  func nextBudget() throws {
    try NodeStage.perform { stage in
      let time = stage.time
      for row in 0..<2 {
        let node = stage.node(Drawn("row \(row)") { _ in time.spend(.milliseconds(4)) }, y: row)
        stage.window.addSubview(node.view)
        try stage.turn()
        #expect(node.isUpToDate)
      }
    }
  }

  @Test("invisible and outdated nodes are drawn by workers")
  func workers() throws {
    try NodeStage.perform { stage in
      let threads = Box<[Int32]>([])
      @Sendable func note(_: Cancellation) { threads.update { $0.append(RunLoop.callingThreadID) } }
      let below = stage.node(Drawn("below", work: note), y: 10)
      let seen = stage.node(TextContent("seen"))
      for node in [below, seen] { stage.window.addSubview(node.view) }
      try stage.turn()
      seen.content = Drawn("again", work: note)
      try stage.turns { below.isUpToDate && seen.isUpToDate }
      #expect(threads.value.count == 2 && !threads.value.contains(stage.thread))
      #expect(stage.text == "again")
    }
  }

  @Test("the steps of a drawing happen in the order of the turn")
  func order() throws {
    try NodeStage.perform { stage in
      let log = stage.log
      let hold = Hold()
      let node = stage.node(TextContent("first"))
      stage.window.addSubview(node.view)
      try stage.turn()
      for (order, name) in [
        (TurnOrder.queues, "queues"), (TurnOrder.updates + 1, "updated"), (TurnOrder.commit + 1, "committed"),
        (TurnOrder.asyncCommit - 1, "beforeHandOver"), (TurnOrder.asyncCommit + 1, "handedOver"),
      ] {
        let observer = RunLoop.Observer(activities: .beforeWaiting, order: order) { _, _ in
          let state = node.lock.withLock { (node.state.underWay != nil, node.batch != nil) }
          log.write("\(name):\(state.0 ? "begun" : "idle")\(state.1 ? "+transaction" : "")")
        }
        stage.application.loop.add(observer, forMode: .default)
      }
      node.content = Drawn("next", hold: hold)
      try stage.turn()
      hold.begun.wait()
      #expect(
        log.text.hasPrefix(
          "queues:idle updated:begun committed:begun beforeHandOver:begun handedOver:begun+transaction"))
      #expect(stage.text == "first")
      hold.released.open()
      try stage.turns { stage.text == "next" }
      log.clear()
      try stage.turn()
      #expect(log.text.hasSuffix("queues:idle updated:idle committed:idle beforeHandOver:idle handedOver:idle"))
    }
  }

  @Test("a node marked again during its drawing shows each drawing, and then the newest version")
  func markedFaster() throws {
    try NodeStage.perform { stage in
      let holds = (0..<4).map { _ in Hold() }
      let drawings = (0..<4).map { Drawn("v\($0)", hold: holds[$0]) }
      let node = stage.workersNode(drawings[0])
      stage.window.addSubview(node.view)
      try stage.turn()
      holds[0].begun.wait()
      node.content = drawings[1]
      node.content = drawings[2]
      holds[0].released.open()
      try stage.turns { stage.text == "v0" }
      holds[2].begun.wait()
      node.content = drawings[3]
      holds[2].released.open()
      try stage.turns { stage.text == "v2" }
      holds[3].released.open()
      try stage.turns { node.isUpToDate }
      #expect(stage.text == "v3")
      #expect(drawings.map(\.drawings.value) == [1, 0, 1, 1])
    }
  }

  @Test("a node whose every drawing marks it again shows frame after frame")
  func marksItself() throws {
    try NodeStage.perform { stage in
      let count = Counter()
      let itself = Box<DisplayNode?>(nil)
      let node = stage.workersNode(
        DrawnContent { canvas, _ in
          canvas.draw("\(count.add())", at: .zero)
          itself.value?.setNeedsDisplay()
        })
      itself.value = node
      stage.window.addSubview(node.view)
      var seen: Set<String> = []
      try stage.turns {
        seen.insert(stage.text)
        return seen.count > 10
      }
      itself.value = nil
      try stage.turns { node.isUpToDate }
    }
  }

  @Test("a drawing for another size is cancelled and not shown")
  func resized() throws {
    try NodeStage.perform { stage in
      let wasCancelled = Latch()
      let hold = Hold()
      let late = Drawn("late") { cancellation in
        hold.occupy()
        waitUntil { cancellation.isCancelled }
        wasCancelled.open()
      }
      let node = stage.workersNode(late)
      stage.window.addSubview(node.view)
      try stage.turn()
      hold.begun.wait()
      node.content = TextContent("wide line")
      node.frame.size.width = 9
      hold.released.open()
      wasCancelled.wait()
      try stage.turns { node.isUpToDate }
      #expect(stage.text == "wide line")
      #expect(node.view.layer.contents?.size.width == 9)
    }
  }

  @Test("a node's old contents stay until the new size is drawn")
  func staysUntilDrawn() throws {
    try NodeStage.perform { stage in
      let hold = Hold()
      let node = stage.workersNode(TextContent("ab cd"))
      stage.window.addSubview(node.view)
      try stage.turns { node.isUpToDate }
      node.content = Drawn("new", hold: hold)
      node.frame = Rect(x: 1, y: 0, width: 3, height: 2)
      try stage.turn()
      #expect(stage.text == " ab")
      hold.released.open()
      try stage.turns { node.isUpToDate }
      #expect(stage.text == " new")
    }
  }

  @Test("a node that is hidden or leaves the window cancels its drawing", arguments: [false, true])
  func cancelled(byHiding: Bool) throws {
    try NodeStage.perform { stage in
      let hold = Hold()
      let wasCancelled = Latch()
      let node = stage.workersNode(
        Drawn("gone") { cancellation in
          hold.begun.open()
          waitUntil { cancellation.isCancelled }
          wasCancelled.open()
          hold.released.wait()
        })
      stage.window.addSubview(node.view)
      try stage.turn()
      hold.begun.wait()
      if byHiding { node.isHidden = true } else { node.view.removeFromSuperview() }
      wasCancelled.wait()
      hold.released.open()
      try stage.turns { stage.group.countUnderWay == 0 }
      #expect(stage.text == "" && !node.isUpToDate)
      // It is drawn when it is back.
      node.content = TextContent("back")
      if byHiding { node.isHidden = false } else { stage.window.addSubview(node.view) }
      try stage.turns { node.isUpToDate }
      #expect(stage.text == "back")
    }
  }

  @Test("a drawing that never ends blocks only its worker")
  func neverEnds() throws {
    try NodeStage.perform { stage in
      let hold = Hold()
      let endless = stage.workersNode(Drawn("never", hold: hold))
      let other = stage.workersNode(TextContent("other"), y: 1)
      for node in [endless, other] { stage.window.addSubview(node.view) }
      try stage.turns { other.isUpToDate }
      hold.begun.wait()
      #expect(stage.text == "\nother" && stage.group.countUnderWay == 1)
      endless.view.removeFromSuperview()
      // The transaction completes although the worker is still drawing.
      try stage.turns { stage.group.countUnderWay == 0 }
      #expect(!hold.released.isOpen)
      hold.released.open()
    }
  }

  @Test("a drawing that arrives after the loop's end is dropped")
  func afterTheEnd() throws {
    let hold = Hold()
    let released = Latch()
    let content = Box<Drawn?>(
      Drawn("late", hold: hold, work: { [token = Token { released.open() }] _ in token.touch() }))
    try NodeStage.perform { stage in
      let node = stage.workersNode(content.value!)
      content.value = nil
      stage.window.addSubview(node.view)
      try stage.turn()
      hold.begun.wait()
    }
    #expect(!released.isOpen)
    hold.released.open()
    released.wait()
  }

  @Test("a drawing that ends its worker's thread is not repeated, but its neighbours are drawn")
  func endsItsThread() throws {
    try NodeStage.perform { stage in
      let content = Drawn("fatal") { _ in Thread.exit() }
      let fatal = stage.workersNode(content, y: 0)
      // Enough nodes for workers to take them in blocks.
      let others = (0..<100).map { stage.workersNode(TextContent("ok"), y: 1 + $0) }
      for node in others.prefix(50) + [fatal] + others.dropFirst(50) { stage.window.addSubview(node.view) }
      try stage.turns { others.allSatisfy(\.isUpToDate) }
      try stage.turns { fatal.lock.withLock { fatal.state.failed == 1 } }
      #expect(stage.text == "\nok\nok\nok" && content.drawings.value == 1)
      fatal.content = TextContent("again")
      try stage.turns { fatal.isUpToDate }
      #expect(stage.text == "again\nok\nok\nok")
    }
  }

  @Test("oversized content is left empty and reported once, and the next content is drawn")
  func tooLarge() throws {
    try NodeStage.perform { stage in
      let content = Drawn("large")
      let node = stage.node(content, width: .max, height: .max)
      node.background = Style(background: .red)
      let before = Diagnostic.transaction.count
      stage.window.addSubview(node.view)
      try stage.turn()
      #expect(node.isUpToDate && content.drawings.value == 0 && stage.text == "")
      #expect(stage.device.shown[0, 0].style.background == .red && Diagnostic.transaction.count == before + 1)
      try stage.turn()
      #expect(Diagnostic.transaction.count == before + 1)
      node.frame = Rect(x: 0, y: 0, width: 2048, height: 2048)
      try stage.turns { node.isUpToDate }
      #expect(stage.text == "large" && content.drawings.value == 1)
    }
  }

  @Test("a node whose group belongs to another loop gets no view, and the message says why")
  func foreignGroup() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let thread = try ResidentThread()
      let elsewhere = try thread.performAndWait { RunLoop.current }
      try await MainActor.run {
        try NodeStage.perform { stage in
          let node = DisplayNode(TextContent("x"), group: .of(elsewhere), workers: stage.workers)
          stage.window.addSubview(node.view)
        }
      }
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("cannot have a view: its group has to be that of the main loop"), "\(message)")
  }

  @Test("empty content is not handed to any worker")
  func empty() throws {
    try NodeStage.perform { stage in
      let node = stage.workersNode(EmptyContent())
      node.background = Style(background: .red)
      stage.window.addSubview(node.view)
      try stage.turn()
      #expect(node.isUpToDate && stage.device.shown[0, 0].style.background == .red)
    }
  }

  @Test("nodes are drawn even in a loop that never gets to wait")
  func storm() throws {
    try NodeStage.perform { stage in
      let node = stage.workersNode(TextContent("0"))
      stage.window.addSubview(node.view)
      try stage.turns { node.isUpToDate }
      let (time, loop) = (stage.time, stage.application.loop)
      let source = Box<RunLoop.Source?>(nil)
      source.value = RunLoop.Source {
        time.spend(.milliseconds(1))
        if node.isUpToDate { loop.stop() } else { source.value?.signal() }
      }
      loop.add(source.value!, forMode: .default)
      node.content = TextContent("1")
      source.value?.signal()
      loop.runUntilStopped()
      source.value?.invalidate()
      source.value = nil
      #expect(node.isUpToDate)
    }
  }
}
