// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// The methods shared with Foundation's loop.
private protocol Posting {
  func perform(_ block: @escaping @Sendable () -> Void)
  func perform(inModes modes: [RunLoop.Mode], block: @escaping @Sendable () -> Void)
  #if compiler(>=6.3)
    func add(_ timer: Timer, forMode mode: RunLoop.Mode)
    func add(_ port: Port, forMode mode: RunLoop.Mode)
  #endif
}

extension RunLoop: Posting {}

#if !compiler(>=6.3)
  // A 6.2 compiler with assertions crashes on a requirement whose witness is generic in its thrown error.
  extension Posting {
    fileprivate func add<Item: RunLoopItem>(_ item: Item, forMode mode: RunLoop.Mode) where Item.Failure == Never {
      (self as? RunLoop)?.add(item, forMode: mode)
    }
  }
#endif

@Suite("Calls that return nothing, or a Bool where one is expected", .timeLimit(.minutes(20)))
struct ResultTests {
  @Test("an ended loop rejects and counts calls without a result like those with a result", .rule(.m21))
  func rejects() {
    let loop = onNewThread { RunLoop.current }
    let (timer, port) = (Timer(timeInterval: 1, repeats: true) { _ in }, Port { _, _ in })
    let posting: any Posting = loop
    posting.perform {}
    posting.perform(inModes: [.common]) {}
    posting.add(timer, forMode: .default)
    posting.add(port, forMode: .default)
    #expect(loop.statistics.rejectionCount == 4)
    #expect(!loop.perform {})
    #expect(!loop.perform(inModes: [.common]) {})
    #expect(!loop.add(timer, forMode: .default))
    #expect(!loop.add(port, forMode: .default))
    #expect(loop.statistics.rejectionCount == 8)
  }

  @Test("a loop accepts calls without a result like those with a result, in order")
  func takes() {
    let log = Log()
    onNewThread {
      let loop = RunLoop.current
      let perform: (@escaping @Sendable () -> Void) -> Void = loop.perform
      perform { log.write("reference") }
      let isTaken: Bool = loop.perform { log.write("result") }
      loop.perform(inModes: [.default]) { log.write("modes") }
      let add: (Timer, RunLoop.Mode) -> Bool = loop.add
      let isAdded = add(Timer(timeInterval: 0, repeats: false) { _ in log.write("timer") }, .default)
      #expect(isTaken && isAdded)
      #expect(loop.perform { log.write("expected") })
      #expect(loop.add(Port(), forMode: .default))
      loop.run(mode: .default, for: .zero)
      log.write("\(isTaken) \(isAdded)")
    }
    #expect(log.text.hasPrefix("reference result modes expected"))
    #expect(log.text.hasSuffix("true true"))
  }
}
