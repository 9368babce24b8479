// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Many resident threads", .timeLimit(.minutes(20)))
struct ResidentStressTests {
  @Test("resident threads created, used, stopped and dropped at random leave nothing, and account for every post")
  func stress() async {
    // Needs its own process, to count its threads and descriptors.
    await #expect(processExitsWith: .success) {
      // Objects that are created once remain.
      try Stress(seed: 0, threads: 2).run(rounds: 4)
      let (threads, descriptors) = (System.threadCount, DescriptorCensus())
      let stress = Stress(seed: 1, threads: 8)
      try stress.run(rounds: 40)
      #expect(stress.posted == stress.accounted)
      #expect(stress.posted > 1000)
      // A joined thread may take a moment to leave the kernel's list.
      waitUntil { System.threadCount <= threads }
      let after = DescriptorCensus()
      #expect(descriptors.isFollowed(by: after), "\(descriptors); then \(after)")
    }
  }
}

private final class Stress: Sendable {
  private let seed: UInt64
  private let count: Int
  private let posts = Atomic<Int>(0)
  private let ends = Atomic<Int>(0)

  init(seed: UInt64, threads: Int) {
    self.seed = seed
    self.count = threads
  }

  var posted: Int { posts.load(ordering: .relaxed) }
  var accounted: Int { ends.load(ordering: .relaxed) }

  func run(rounds: Int) throws {
    let users = (0..<count).map { number in
      Thread.started { [self] in
        var random = SplitMix64(seed: seed << 32 | UInt64(number))
        for _ in 0..<rounds {
          do { try live(&random) } catch { Issue.record(error) }
        }
      }
    }
    for user in users { try user.join() }
  }

  private func live(_ random: inout SplitMix64) throws {
    var handle: ResidentThread? = try ResidentThread()
    guard let core = handle?.core else { return }
    for _ in 0..<random.below(30) { use(handle, core, &random) }
    switch random.below(5) {
    case 0: handle?.stop(.immediately)
    case 1: handle?.stop()
    case 2: post { _ = try handle?.perform { Thread.exit() } }
    case 3:
      // The last reference is released on the thread.
      let box = Box(handle)
      post { _ = try handle?.perform { box.value = nil } }
    default: break
    }
    if random.below(2) == 0 { use(handle, core, &random) }
    handle = nil
    // Threads that were not stopped end with their last reference.
    try core.thread.join()
    ends.wrappingAdd(core.counts.posted, ordering: .relaxed)
  }

  private func post(_ body: () throws -> Void) {
    posts.wrappingAdd(1, ordering: .relaxed)
    try? body()
  }

  private func use(_ handle: ResidentThread?, _ core: ResidentCore, _ random: inout SplitMix64) {
    guard let thread = handle else { return }
    switch random.below(12) {
    case 0...2: post { try thread.perform {} }
    case 3: post { try thread.perform(inModes: ["never"]) {} }
    case 4: post { _ = try thread.perform {}.cancel() }
    case 5: post { try thread.performAndWait {} }
    case 6: post { try thread.performAndWait(timeout: .zero) {} }
    case 7: post { try thread.perform(afterDelay: .zero) {} }
    case 8: post { try thread.perform(afterDelay: .seconds(1000)) {} }
    case 9: post { _ = try thread.perform(afterDelay: .microseconds(50)) {}.cancel() }
    case 10: post { try thread.perform { [weak core] in core?.runLoop.stop() } }
    default:
      if random.below(20) == 0 { thread.stop(random.below(2) == 0 ? .immediately : .afterPendingWork) }
    }
  }
}
