// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import Testing

  @testable import RunLoopExecutors

  @Suite("Jobs in the pool of resident threads")
  struct PoolStateTests {
    private func text(_ action: PoolState<String, Int>.Action) -> String {
      switch action {
      case .wait: "wait"
      case .run(let worker): "run on \(worker)"
      case .start(let number): "start \(number)"
      }
    }

    @Test("pool threads start one after another up to the limit, and then jobs wait in order")
    func starting() {
      var state = PoolState<String, Int>(limit: 2)
      #expect((1...4).map { text(state.enqueue($0)) } == ["start 1", "start 2", "wait", "wait"])
      #expect(
        [state.next(for: "a"), state.next(for: "b"), state.next(for: "a"), state.next(for: "b")] == [1, 2, 3, 4])
    }

    @Test("an idle thread gets the next job, the most recently idle first, and no other is started")
    func idle() {
      var state = PoolState<String, Int>(limit: 3)
      #expect([text(state.enqueue(1)), text(state.enqueue(2))] == ["start 1", "start 2"])
      #expect(state.next(for: "a") == 1)
      #expect(state.next(for: "b") == 2)
      #expect(state.next(for: "a") == nil)
      #expect(state.next(for: "b") == nil)
      #expect((3...5).map { text(state.enqueue($0)) } == ["run on b", "run on a", "start 3"])
    }

    @Test("a thread that fails to start leaves its jobs to running ones, and the last returns all of them")
    func failing() {
      var state = PoolState<String, Int>(limit: 2)
      #expect((1...3).map { text(state.enqueue($0)) } == ["start 1", "start 2", "wait"])
      #expect(state.takeBack() == [])
      #expect(state.takeBack() == [1, 2, 3])
      #expect(text(state.enqueue(4)) == "start 1")
    }

    @Test("every job is handed out once and in order, however many are waiting")
    func order() {
      var state = PoolState<String, Int>(limit: 1)
      var (taken, added): ([Int], Int) = ([], 0)
      for round in 1...200 {
        for _ in 0..<round {
          _ = state.enqueue(added)
          added += 1
        }
        for _ in 0..<(round - 1) { if let job = state.next(for: "a") { taken.append(job) } }
      }
      while let job = state.next(for: "a") { taken.append(job) }
      #expect(taken == Array(0..<added))
    }
  }
#endif
