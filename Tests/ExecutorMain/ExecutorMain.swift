// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import Dispatch
  import Glibc
  import RunLoopCore
  @_spi(ExperimentalCustomExecutors) import RunLoopExecutors
  import RunLoopThreads
  import Synchronization
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  typealias DefaultExecutorFactory = RunLoopExecutorFactory

  // A program with an async main on our executors. It runs one case, and prints the failure or "ok".
  //
  //   executor-main first A B    two uses of the main thread, in this order, before anything else
  //   executor-main NAME         one of the cases below
  @main
  struct ExecutorMain {
    static func main() async throws {
      let arguments = Array(CommandLine.arguments.dropFirst())
      require(RunLoop.isMainThread, "main began on another thread")
      switch arguments.first {
      case "first":
        for argument in arguments.dropFirst() { await use(argument) }
      case "identity": identity()
      case "sleeps": try await sleeps()
      case "cancelled": await cancelled()
      case "isolation": await isolation()
      case "tasks": await tasks()
      case "blocked": await blocked()
      case "preference": await preference()
      case "until": until()
      case "scheduled": await scheduled()
      case "nested": await nested()
      case "throws": throw CancellationError()
      case "stopped":
        // A stop ends the run in which the runtime runs the executor.
        await Task.yield()
        RunLoop.main.stop()
        try await Task.sleep(for: .seconds(3600))
      case "leaves": await leaves()
      default: require(false, "no such case")
      }
      require(RunLoop.isMainThread, "main went on on another thread")
      say("ok")
    }

    @MainActor static func use(_ name: String) async {
      switch name {
      case "queue": await withCheckedContinuation { done in DispatchQueue.main.async { check(done) } }
      case "later":
        await withCheckedContinuation { done in
          DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(1)) { check(done) }
        }
      case "source":
        let source = DispatchSource.makeTimerSource(queue: .main)
        await withCheckedContinuation { done in
          source.setEventHandler { check(done) }
          source.schedule(deadline: .now())
          source.resume()
        }
      case "block": await withCheckedContinuation { done in RunLoop.main.perform { check(done) } }
      case "timer":
        await withCheckedContinuation { done in RunLoop.main.schedule(in: .milliseconds(1)) { _ in check(done) } }
      case "thread":
        await withCheckedContinuation { done in
          do { try Thread.main.perform { check(done) } } catch { require(false, "\(error)") }
        }
      case "actor": await Task.detached { await MainActor.run { requireMain() } }.value
      case "sleep": try? await Task.sleep(for: .milliseconds(1))
      case "yield": await Task.yield()
      case "detached": await Task.detached { require(!RunLoop.isMainThread, "a task on the main thread") }.value
      case "dispatch":
        await withCheckedContinuation { done in DispatchQueue.global().async { DispatchQueue.main.sync { check(done) } }
        }
      default: require(false, "no such use: \(name)")
      }
      requireMain()
    }

    /// Resumes the suspended main function, in a call on the main thread.
    static func check(_ done: CheckedContinuation<Void, Never>) {
      MainActor.assumeIsolated { requireMain() }
      done.resume()
    }

    static func requireMain() {
      require(RunLoop.isMainThread, "not on the main thread")
      dispatchPrecondition(condition: .onQueue(.main))
    }

    @MainActor static func identity() {
      require(MainActor.executor === RunLoopExecutorFactory.mainExecutor, "another main executor")
      require(MainActor.executor.isMainExecutor, "the main executor does not know that it is that")
      require(
        Task.defaultExecutor as AnyObject === RunLoopExecutorFactory.defaultExecutor as AnyObject,
        "another default executor")
    }
  }

  func say(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
  }

  func require(_ condition: Bool, _ text: String) {
    guard !condition else { return }
    say(text)
    _exit(9)
  }
#else
  @main
  struct ExecutorMain {
    static func main() { print("this compiler has other executors") }
  }
#endif
