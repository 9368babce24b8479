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

  @Test("objects kept in a turn are released before the wait in reverse order, after all observers")
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

  @Test("an object that only the pool retains can be used until the end of the turn")
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

  @Test("objects kept in call-outs after the wait are released when the run ends")
  func exit() {
    let log = record { loop, log in
      loop.after(.milliseconds(1)) { _ in TurnPool.current?.keep(Token(log)) }
      loop.add(RunLoop.Observer(activities: .all) { _, activity in log.write(activity.letter) }, forMode: .default)
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "E BT BS BW AW X released")
  }

  @Test("objects added while a pool drains are released during the same drain, in place")
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

  @Test("a run nested in a call-out has its own pools, and leaves the outer one unchanged")
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

  @Test("a run nested in a release by a pool has its own pools, and nothing is lost")
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

  @Test("a manual pool closes whether its closure returns or throws, and passes on the result")
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

  @Test("a loop run inside a manual pool opens and closes its own pools")
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

  @Test("a pool that the thread installs during a run is open at once")
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

  @Test("a pool installed during a run of a mode that is not common does not open there")
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

  @Test("with the pool installed twice, a turn still has one pool")
  func installedTwice() {
    _ = record { loop, _ in
      TurnPool.install(in: loop)
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
      #expect(TurnPool.counts(of: loop) == (2, 2, 0))
    }
  }

  @Test("outside runs, without a pool or without a loop there is no pool, and no loop is created")
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

  @Test("in a mode that is not common, objects are kept for the enclosing run")
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

  @Test("objects added to a closed pool wait for the next one")
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

  @Test("objects left at the loop's end are released on its thread")
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

  @Test("a thread that ends within its turn leaves nothing in its pool")
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

  @Test("a loop whose thread has ended accepts no pool")
  func endedLoop() {
    let loop = onNewThread { RunLoop.current }
    TurnPool.install(in: loop)
    #expect(TurnPool.counts(of: loop) == (0, 0, 0))
  }

  @Test("after any nesting all opened pools were closed, and everything was released once", arguments: 1...20)
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
