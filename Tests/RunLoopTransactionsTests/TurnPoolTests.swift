// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("The pool of a turn", .timeLimit(.minutes(20)))
struct TurnPoolTests {
  /// Runs a loop with a pool installed, and returns the log.
  private func record(_ body: @escaping @Sendable (RunLoop, Log) -> Void) -> String {
    let log = Log()
    onVirtualTime { _, loop in
      TurnPool.install(in: loop)
      body(loop, log)
      let counts = TurnPool.counts(of: loop)
      #expect(counts.pushes == counts.pops && counts.open == 0)
    }
    return log.text
  }

  @Test("what is kept in a turn is released before the wait, the last first, after every other observer")
  func endOfTurn() {
    let log = record { loop, log in
      loop.signalled {
        TurnPool.current?.keep(Token(log, "first"))
        TurnPool.current?.onEndOfTurn { log.write("second") }
        TurnPool.current?.keep(Token(log, "third"))
        log.write("source")
      }
      loop.add(RunLoop.Observer(activities: .all) { _, activity in log.write(activity.letter) }, forMode: .default)
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "E BT BS source BT BS BW third second first AW X")
  }

  @Test("an object that nobody else holds can be used until the end of the turn")
  func usable() {
    let log = record { loop, log in
      let kept = Box(WeakBox<Token>(nil))
      loop.signalled { kept.value = WeakBox(TurnPool.current?.keep(Token(log))) }
      loop.once(.beforeWaiting) { log.write(kept.value.object == nil ? "gone" : "there") }
      loop.run(mode: .default, for: 1)
      log.write(kept.value.object == nil ? "gone" : "there")
    }
    #expect(log == "there released gone")
  }

  @Test("what is kept in the call-outs after the wait is released when the run ends")
  func exit() {
    let log = record { loop, log in
      loop.after(.milliseconds(1)) { _ in TurnPool.current?.keep(Token(log)) }
      loop.add(RunLoop.Observer(activities: .all) { _, activity in log.write(activity.letter) }, forMode: .default)
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "E BT BS BW AW X released")
  }

  @Test("what is added while a pool is emptied is released in the same go, at its place")
  func addedMeanwhile() {
    let log = record { loop, log in
      loop.signalled {
        TurnPool.current?.onEndOfTurn { log.write("1") }
        TurnPool.current?.onEndOfTurn {
          log.write("2")
          TurnPool.current?.onEndOfTurn {
            log.write("3")
            TurnPool.current?.keep(Token(log, "4"))
          }
          TurnPool.current?.keep(Token { TurnPool.current?.onEndOfTurn { log.write("5") } })
        }
      }
      loop.once(.afterWaiting) { log.write("AW") }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "2 5 3 4 1 AW")
  }

  @Test("a run within a call-out has pools of its own, and leaves the outer one as it is")
  func nested() {
    let log = record { loop, log in
      loop.signalled {
        TurnPool.current?.keep(Token(log, "outer"))
        loop.signalled { TurnPool.current?.keep(Token(log, "inner")) }
        loop.run(mode: .default, for: 0.1)
        log.write("returned")
      }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "inner returned outer")
  }

  @Test("a run within what a pool releases has pools of its own, and nothing is lost")
  func nestedInRelease() {
    let log = record { loop, log in
      loop.signalled {
        TurnPool.current?.keep(Token(log, "first"))
        TurnPool.current?.onEndOfTurn {
          TurnPool.current?.keep(Token(log, "added"))
          loop.signalled { TurnPool.current?.keep(Token(log, "inner")) }
          loop.run(mode: .default, for: 0.1)
          log.write("returned")
        }
        TurnPool.current?.keep(Token(log, "last"))
      }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "last inner returned added first")
  }

  @Test("a pool by hand is closed whether its closure returns or throws, and returns what the closure does")
  func byHand() {
    struct Failure: Error {}
    let log = record { _, log in
      let answer = TurnPool.withPool { () -> Int in
        TurnPool.current?.keep(Token(log, "outer"))
        #expect(throws: Failure.self) {
          try TurnPool.withPool {
            TurnPool.current?.keep(Token(log, "inner"))
            throw Failure()
          }
        }
        log.write("thrown")
        return 7
      }
      log.write("\(answer)")
    }
    #expect(log == "inner thrown outer 7")
  }

  @Test("a loop that runs within a pool by hand opens and closes its own")
  func runByHand() {
    let log = record { loop, log in
      TurnPool.withPool {
        TurnPool.current?.keep(Token(log, "hand"))
        loop.signalled { TurnPool.current?.keep(Token(log, "turn")) }
        loop.run(mode: .default, for: 0.1)
        log.write("returned")
      }
    }
    #expect(log == "turn returned hand")
  }

  @Test("installed within a run by its thread, the pool is open at once")
  func installedWithin() {
    let log = Log()
    onVirtualTime { _, loop in
      loop.signalled {
        TurnPool.install(in: loop)
        TurnPool.current?.keep(Token(log, "kept"))
        log.write("source")
      }
      loop.once(.afterWaiting) { log.write("AW") }
      loop.run(mode: .default, for: 1)
      #expect(TurnPool.counts(of: loop) == (2, 2, 0))
    }
    #expect(log.text == "source kept AW")
  }

  @Test("installed within a run of a mode that is not common, no pool is open there")
  func installedInOtherMode() {
    onVirtualTime { _, loop in
      loop.signalled(mode: "other") {
        TurnPool.install(in: loop)
        #expect(TurnPool.current == nil)
      }
      loop.run(mode: "other", for: 1)
      #expect(TurnPool.counts(of: loop) == (0, 0, 0))
    }
  }

  @Test("installed twice, a turn still has one pool")
  func installedTwice() {
    _ = record { loop, _ in
      TurnPool.install(in: loop)
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
      #expect(TurnPool.counts(of: loop) == (2, 2, 0))
    }
  }

  @Test("without a run, without a pool, and on a thread without a loop there is none, and no loop is made")
  func none() {
    onNewThread {
      #expect(TurnPool.current == nil)
      #expect(RunLoop.currentIfMade == nil)
      TurnPool.install(in: .current)
      #expect(TurnPool.current == nil)
      RunLoop.current.signalled(mode: "other") { #expect(TurnPool.current == nil) }
      RunLoop.current.run(mode: "other", for: 0)
    }
  }

  @Test("a run in a mode that is not common keeps for the run around it")
  func otherMode() {
    let log = record { loop, log in
      loop.signalled {
        loop.signalled(mode: "other") { TurnPool.current?.keep(Token(log)) }
        loop.run(mode: "other", for: 0.1)
        log.write("returned")
      }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "returned released")
  }

  @Test("what is given to a pool that is closed waits for the next")
  func closedPool() {
    let log = record { loop, log in
      let pool = TurnPool.withPool { TurnPool.current }
      pool?.keep(Token(log))
      log.write("kept")
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "kept released")
  }

  @Test("what is left at the end of the loop is released on its thread")
  func endOfLoop() {
    let log = Log()
    let thread = onNewThread {
      let pool = TurnPool.withPool { TurnPool.current }
      pool?.onEndOfTurn {
        log.write("\(RunLoop.callingThreadID)")
        pool?.keep(Token(log, "after"))
      }
      return RunLoop.callingThreadID
    }
    #expect(log.text == "\(thread) after")
  }

  @Test("a thread that ends within its turn leaves nothing behind")
  func exitInTurn() throws {
    let log = Log()
    let thread = Thread {
      TurnPool.install(in: .current)
      RunLoop.current.signalled {
        TurnPool.current?.keep(Token(log, "outer"))
        TurnPool.current?.onEndOfTurn {
          TurnPool.withPool {
            TurnPool.current?.keep(Token(log, "inner"))
            Thread.exit()
          }
        }
      }
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
    try thread.tryStart()
    try thread.join()
    #expect(log.text == "inner outer")
  }

  @Test("a loop whose thread has ended takes no pool")
  func endedLoop() {
    let loop = onNewThread { RunLoop.current }
    TurnPool.install(in: loop)
    #expect(TurnPool.counts(of: loop) == (0, 0, 0))
  }

  @Test("after any nesting as many pools were closed as opened, and everything was released once", arguments: 1...20)
  func anyNesting(seed: UInt64) {
    let kept = Counter()
    let released = Counter()
    onVirtualTime { _, loop in
      TurnPool.install(in: loop)
      let random = Box(SplitMix64(seed: seed))
      loop.keepAlive()
      for _ in 0..<20 {
        loop.signalled { Nesting(random: random, kept: kept, released: released).act(depth: 0) }
        loop.run(mode: .default, for: 0.01)
        let counts = TurnPool.counts(of: loop)
        #expect(counts.pushes == counts.pops && counts.open == 0)
        #expect(kept.value == released.value)
      }
      #expect(TurnPool.counts(of: loop).pushes > 100)
    }
  }

  /// Randomly keeps objects, runs loops and opens pools, nested in each other.
  private struct Nesting: Sendable {
    let random: Box<SplitMix64>
    let kept: Counter
    let released: Counter

    func act(depth: Int) {
      for _ in 0..<4 {
        let choice = random.update { $0.below(5) }
        if choice < 2 || depth == 4 {
          keep()
          continue
        }
        switch choice {
        case 2:
          kept.add()
          TurnPool.current?.onEndOfTurn {
            released.add()
            act(depth: depth + 1)
          }
        case 3: TurnPool.withPool { act(depth: depth + 1) }
        default:
          let loop = RunLoop.current
          loop.perform { act(depth: depth + 1) }
          loop.run(mode: .default, for: 0.001)
        }
      }
    }

    private func keep() {
      kept.add()
      TurnPool.current?.keep(Token { released.add() })
    }
  }
}
