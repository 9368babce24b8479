// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopTesting
import RunLoopTransactions

/// E5: nodes are laid out and drawn by workers, and applied to their views together.
struct AsyncDisplay: Experiment {
  let id = "E5"
  let title = "Layout and drawing off the main thread"
  let articles: [Article] = [.xilankong]
  let claim = """
    AsyncDisplayKit lays out and draws in the background what otherwise keeps the main thread, and puts off what only the main thread \
    can do, as making views and setting their properties. A node's properties can be set on any thread, and are brought to the view \
    later: an observer of the main loop's beforeWaiting and exit goes through all that was queued and does it.
    """
  let verdict = Verdict.corrected(
    """
    The observer of beforeWaiting and exit, of the order INT_MAX, commits the turn's transactions: it hands work over to other \
    threads. What was changed is applied by another observer, of the order 1000000, shortly before the commit of Core Animation.
    """)
  let evidence = """
    AsyncDisplayKit's source: _ASAsyncTransactionGroup registers an observer of kCFRunLoopBeforeWaiting | kCFRunLoopExit that calls \
    commit, so that more can be added to the transaction in the current pass; Texture's ASCATransactionQueue has the order 1000000, \
    to be processed shortly before Core Animation's 2000000.
    """
  let difference = Difference.addition(
    """
    DisplayNode of RunLoopDisplay has both observers. What is visible and was never drawn is drawn by the main thread, for up to 4 ms \
    in a turn, so that no placeholder flashes; views whose nodes are gone are released on the main thread, some in each turn.
    """)
  let needsMainThread = true

  func run(on bench: Bench) -> Outcome {
    MainActor.assumeIsolated { observe(bench) }
  }

  @MainActor
  private func observe(_ bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "the threads on which a node with two subnodes is laid out, and all three are drawn", threads(bench),
      requires: "layout on a worker, drawings on workers 3, on the main thread 0")
    outcome.observe(
      "four threads that set a hundred names of three nodes; the views' names around the order 1000000", updates(bench),
      requires: "beforeWaiting 999999: none none none, 1000001: 100 100 100, then commit")
    outcome.observe(
      "the same in a run that ends without a wait", exit(bench), requires: "exit 999999: none, 1000001: changed")
    outcome.observe(
      "drawings that were begun, before and after the order 2147483646", handOver(bench),
      requires: "2147483645: none, 2147483647: handed over")
    outcome.observe(
      "views of a node, its subnode and a hidden one: made on a worker, in a window, at the end of the turn, shown",
      views(bench), requires: "000 100 110 111")
    outcome.observe(
      "forty views whose nodes a worker releases", releases(bench), requires: "16 32 40, on the main thread")
    outcome.observe(
      "six visible nodes that were never drawn, of 1 ms each", budget(bench), requires: "main thread 4, workers 2")
    return outcome
  }

  @MainActor
  private func threads(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let layouts = Found<[Bool]>([])
      let drawings = Found<[Bool]>([])
      let main = callingThread
      let subnodes = (0..<2).map { _ in stage.node(PaintedContent { drawings.append(callingThread == main) })
      }
      let root = stage.node(
        PlacingContent(subnodes) {
          layouts.append(callingThread == main)
        } draw: {
          drawings.append(callingThread == main)
        })
      root.frame.size.height = 2
      for subnode in subnodes { root.addSubnode(subnode) }
      stage.show(root)
      stage.run { root.isUpToDate && subnodes.allSatisfy(\.isUpToDate) && drawings.value.count >= 3 }
      let onMain = drawings.value.count { $0 }
      let layout = layouts.value == [false] ? "on a worker" : "\(layouts.value)"
      return "layout \(layout), drawings on workers \(drawings.value.count - onMain), on the main thread \(onMain)"
    }
  }

  @MainActor
  private func updates(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let nodes = (0..<3).map { _ in stage.node(EmptyContent()) }
      for node in nodes { stage.show(node) }
      stage.run { true }
      let record = Record()
      stage.observe(.beforeWaiting, orders: [999_999, 1_000_001]) { order, activity in
        let names = nodes.map { $0.view.name ?? "none" }.joined(separator: " ")
        record.write(order == 999_999 ? "\(activity.name) \(order): \(names)," : "\(order): \(names),")
      }
      stage.observe(.beforeWaiting, orders: [2_000_000]) { _, _ in record.write("then commit") }
      // All threads end with the same name.
      for _ in 0..<4 {
        onNewThread { for number in 1...100 { for node in nodes { node.name = "\(number)" } } }
      }
      stage.runOnce()
      return record.lines.prefix(3).joined(separator: " ")
    }
  }

  @MainActor
  private func exit(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let node = stage.node(EmptyContent())
      stage.show(node)
      stage.run { true }
      let record = Record()
      stage.observe(.exit, orders: [999_999, 1_000_001]) { order, activity in
        let name = node.view.name ?? "none"
        record.write(order == 999_999 ? "\(activity.name) \(order): \(name)," : "\(order): \(name)")
      }
      let source = RunLoop.Source { [loop = stage.rig.loop] in
        node.name = "changed"
        loop.stop()
      }
      stage.rig.loop.add(source, forMode: .default)
      source.signal()
      stage.runOnce()
      return record.lines.prefix(2).joined(separator: " ")
    }
  }

  @MainActor
  private func handOver(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let flag = Flag(bench.meeting)
      let node = stage.node(PaintedContent { flag.set() })
      stage.show(node)
      let record = Record()
      stage.observe(.beforeWaiting, orders: [2_147_483_645, 2_147_483_647]) { order, _ in
        // A worker needs time, so the drawing is awaited after the order at which it is handed over.
        let isDrawn = order == 2_147_483_645 ? flag.isSet : bench.meeting.wait { flag.isSet }
        record.write("\(order): \(isDrawn ? "handed over" : "none")")
      }
      stage.runOnce()
      return record.lines.prefix(2).joined(separator: ", ")
    }
  }

  @MainActor
  private func views(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let made = Found<[DisplayNode]>([])
      let group = stage.group
      onNewThread {
        let nodes = (0..<3).map { number in
          DisplayNode(
            TextContent("\(number)"), frame: Rect(x: 2 * number, y: 0, width: 2, height: 1), group: group)
        }
        nodes[0].addSubnode(nodes[1])
        nodes[0].addSubnode(nodes[2])
        nodes[2].isHidden = true
        for node in nodes { made.append(node) }
      }
      let nodes = made.value
      let text = { nodes.map { $0.isViewLoaded ? "1" : "0" }.joined() }
      var seen = [text()]
      stage.window.addSubview(nodes[0].view)
      seen.append(text())
      stage.runOnce()
      seen.append(text())
      onNewThread { made.value[2].isHidden = false }
      stage.runOnce()
      seen.append(text())
      return seen.joined(separator: " ")
    }
  }

  @MainActor
  private func releases(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let (rig, main) = (stage.rig, callingThread)
      let threads = Found<[Bool]>([])
      let nodes = Found<[DisplayNode]>([])
      for _ in 0..<40 {
        let node = stage.node(EmptyContent())
        node.view.addSubview(
          DyingView {
            threads.append(callingThread == main)
            // A turn has time for only some of them.
            if callingThread == main { rig.time.spend(.milliseconds(1)) }
          })
        nodes.append(node)
      }
      var counts: [Int] = []
      stage.observe(.beforeWaiting, orders: [1]) { _, _ in
        if counts.last != threads.value.count { counts.append(threads.value.count) }
      }
      onNewThread { nodes.value = [] }
      stage.run { threads.value.count == 40 }
      let place = threads.value.allSatisfy { $0 } ? "on the main thread" : "on other threads too"
      return "\(counts.filter { $0 > 0 }.map(String.init).joined(separator: " ")), \(place)"
    }
  }

  @MainActor
  private func budget(_ bench: Bench) -> String {
    bench.onNodes { stage in
      let (rig, main) = (stage.rig, callingThread)
      let threads = Found<[Bool]>([])
      let nodes = (0..<6).map { row in
        let node = DisplayNode(
          PaintedContent {
            threads.append(callingThread == main)
            if callingThread == main { rig.time.spend(.milliseconds(1)) }
          }, frame: Rect(x: 0, y: row, width: 8, height: 1), group: stage.group)
        stage.show(node)
        return node
      }
      stage.run { nodes.allSatisfy(\.isUpToDate) }
      return "main thread \(threads.value.count { $0 }), workers \(threads.value.count { !$0 })"
    }
  }
}

/// Content that reports when it is drawn.
private struct PaintedContent: NodeContent {
  let painted: @Sendable () -> Void

  init(_ painted: @escaping @Sendable () -> Void) { self.painted = painted }

  func layout(_ size: SizeRange) -> Layout { Layout(size: size.clamp(Size(width: 8, height: 1))) }

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    painted()
    canvas.draw("painted", at: .zero)
  }
}

/// Content that places subnodes, and reports it.
private struct PlacingContent: NodeContent {
  private let stack: StackContent
  private let placed: @Sendable () -> Void
  private let painted: @Sendable () -> Void

  init(_ nodes: [DisplayNode], layout: @escaping @Sendable () -> Void, draw: @escaping @Sendable () -> Void) {
    stack = StackContent(.vertical, nodes.map(SubnodeContent.init))
    placed = layout
    painted = draw
  }

  func layout(_ size: SizeRange) -> Layout {
    placed()
    return stack.layout(size)
  }

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) { painted() }
}

/// A view that reports its deallocation.
private final class DyingView: View {
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    super.init()
  }

  deinit { body() }
}
