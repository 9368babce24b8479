// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// Under the thread sanitizer, nothing may run in a thread's last round of destructors, which ends the sanitizer's
/// state.
private let canRunInLastRound = dlsym(nil, "__tsan_init") == nil

@Suite("Threads and their loops", .timeLimit(.minutes(20)))
struct ThreadLoopTests {
  @Test("a thread has no loop before it asks for one, and then the same one always", .rule(.r113))
  func firstRequest() {
    let log = onNewThread {
      let log = Log()
      log.write("\(RunLoop.currentIfMade == nil)")
      let loop = RunLoop.current
      log.write("\(RunLoop.current === loop) \(RunLoop.currentIfMade === loop) \(loop.hasEnded)")
      log.write("\(loop.threadID == RunLoop.callingThreadID)")
      return log.text
    }
    #expect(log == "true true true false true")
  }

  @Test(
    "asking about the main loop makes none for the asking thread, and running without one makes it", .rule(.r22, .r113))
  func lazily() {
    let log = onNewThread {
      let log = Log()
      _ = RunLoop.main.modes
      _ = Timer(timeInterval: 1, repeats: false) { _ in }
      _ = RunLoop.Source {}
      log.write("\(RunLoop.currentIfMade == nil)")
      let timer = Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in }
      log.write("\(RunLoop.currentIfMade?.contains(timer, forMode: .default) ?? false)")
      return log.text
    }
    #expect(log == "true true")
  }

  @Test("two threads have two loops", .rule(.r113))
  func twoThreads() {
    let (first, second) = onNewThread { (RunLoop.current, onNewThread { RunLoop.current }) }
    #expect(first !== second)
    #expect(first != second)
    #expect(first.threadID != second.threadID)
  }

  @Test("a new loop has the default mode and nothing in it", .rule(.r21))
  func new() {
    let (modes, result) = onNewThread { (RunLoop.current.modes, RunLoop.current.run(mode: .default, for: 100)) }
    #expect(modes == [.default])
    #expect(result == .finished)
  }

  @Test("the main loop is the same from every thread, also before the main thread has asked for it", .rule(.r113))
  func main() {
    let loops = (0..<4).map { _ in startThread { (RunLoop.main, RunLoop.current) } }.map { $0.result() }
    for (main, current) in loops {
      #expect(main === RunLoop.main)
      #expect(current !== main)
    }
    #expect(RunLoop.main.threadID == getpid())
    // The test program has an async main, which eventually ends the process's first thread.
    #expect(!RunLoop.main.hasEnded || RunLoop.mainThreadHasLeft)
  }

  @Test("a loop is registered from its first request to the end of its thread, and ends with it", .rule(.r113, .r115))
  func registry() {
    let (loop, wasRegistered) = onNewThread {
      let loop = RunLoop.current
      return (loop, RunLoopRegistry.shared.contains(loop) && !loop.hasEnded)
    }
    #expect(wasRegistered)
    #expect(!RunLoopRegistry.shared.contains(loop))
    #expect(loop.hasEnded)
  }

  @Test("a loop without other references is released at the end of its thread", .rule(.r115))
  func released() {
    let loop = onNewThread { WeakBox(RunLoop.current) }
    #expect(loop.object == nil)
  }

  @Test("threads that follow each other, and so have the same ids, have loops of their own", .rule(.r118))
  func reusedIDs() {
    var loops: Set<RunLoop> = []
    var weakLoops: [WeakBox<RunLoop>] = []
    for round in 0..<60 {
      let isKept = round % 2 == 0
      let (loop, kept, wasFresh) = onNewThread {
        let loop = RunLoop.current
        let wasFresh = !loop.hasEnded && loop.modes == [.default]
        loop.keepAlive("used")
        return (WeakBox(loop), isKept ? loop : nil, wasFresh)
      }
      #expect(wasFresh)
      weakLoops.append(loop)
      if let kept { #expect(loops.insert(kept).inserted) }
    }
    #expect(loops.count == 30)
    #expect(loops.allSatisfy { $0.hasEnded && !RunLoopRegistry.shared.contains($0) })
    #expect(weakLoops.count { $0.object != nil } == 30)
  }

  @Test(
    "a destructor still finds the loop in the first round, and it takes work; in the second the loop has ended",
    .rule(.r115, .m36))
  func destructor() throws {
    // The loops' key is older, so the loop ends before this is called in the second round.
    let log = try withDestructor(rounds: 2) { witness in
      let loop = RunLoop.current
      witness.look = { _ in
        let current = RunLoop.current
        witness.log.write("\(current === loop) \(current.hasEnded) \(current.perform {} as Bool)")
      }
    }
    #expect(log == "true false true false true false")
  }

  @Test(
    "a destructor finds a loop that has ended from the second round on", .rule(.r115, .m21, .m36),
    .enabled(if: canRunInLastRound))
  func lateDestructor() throws {
    let log = try withDestructor(rounds: 4) { witness in
      let loop = RunLoop.current
      witness.look = { round in
        guard round >= 2 else { return }
        let current = RunLoop.current
        let isTaken: Bool = current.perform {}
        witness.log.write("\(round) \(current === loop) \(loop.hasEnded) \(current.hasEnded) \(isTaken)")
      }
    }
    #expect(log == "2 false true true false 3 false true true false 4 false true true false")
  }

  @Test(
    "a loop that is first asked for by a destructor ends with the thread too", .rule(.r113, .r115),
    .enabled(if: canRunInLastRound))
  func firstInDestructor() throws {
    let kept = Box<RunLoop?>(nil)
    let log = try withDestructor(rounds: 1) { witness in
      witness.look = { _ in
        witness.log.write("\(RunLoop.currentIfMade == nil)")
        kept.value = RunLoop.current
        witness.log.write("\(RunLoop.current.hasEnded)")
      }
    }
    #expect(log == "true false")
    let loop = try #require(kept.value)
    #expect(loop.hasEnded)
    #expect(!RunLoopRegistry.shared.contains(loop))
  }

  @Test(
    "a loop ends once, with one cancel call-out, though each round of destructors asks for it and for others'",
    .rule(.r115, .m36))
  func oneEnd() throws {
    let cancels = Counter()
    let log = try withDestructor(rounds: 3) { witness in
      RunLoop.current.add(RunLoop.Source(cancel: { _, _ in cancels.add() }, perform: {}), forMode: .default)
      witness.look = { round in
        let isTaken = RunLoop.current.add(RunLoop.Source(cancel: { _, _ in cancels.add() }, perform: {}), forMode: "A")
        witness.log.write("\(round) \(isTaken)")
      }
    }
    #expect(log == "1 true 2 false 3 false")
    #expect(cancels.value == 2)
  }

  /// Runs `body` on a thread whose thread-specific data has a destructor that calls `look` in the first `rounds` of
  /// four rounds.
  private func withDestructor(rounds: Int, _ body: @escaping @Sendable (Witness) -> Void) throws -> String {
    var key = pthread_key_t()
    let answer = pthread_key_create(&key) { value in
      guard let value else { return }
      Unmanaged<Witness>.fromOpaque(value).takeRetainedValue().callBack()
    }
    try #require(answer == 0)
    let witness = Witness(key, rounds: rounds)
    onNewThread {
      body(witness)
      witness.arm()
    }
    pthread_key_delete(key)
    witness.look = { _ in }
    return witness.log.text
  }

  private final class Witness: @unchecked Sendable {
    // Sendable: used by one thread after another.
    let log = Log()
    var look: (Int) -> Void = { _ in }
    private let key: pthread_key_t
    private let rounds: Int
    private var round = 0

    init(_ key: pthread_key_t, rounds: Int) {
      self.key = key
      self.rounds = rounds
    }

    func arm() { pthread_setspecific(key, Unmanaged.passRetained(self).toOpaque()) }

    func callBack() {
      round += 1
      look(round)
      if round < rounds { arm() }
    }
  }
}
