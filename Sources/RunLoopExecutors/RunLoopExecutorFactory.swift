// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  @_spi(ExperimentalCustomExecutors) import _Concurrency

  /// The executors of a program whose main actor lives on the main run loop, and whose other tasks run on resident
  /// threads.
  ///
  /// ```swift
  /// typealias DefaultExecutorFactory = RunLoopExecutorFactory
  /// ```
  ///
  /// In the module of an `async` main, the compiler takes the factory by that name. With Swift 6.3 it does so only with
  /// `-Xfrontend -disable-availability-checking`, and says nothing without it. A program with a `main` that is not
  /// `async` needs no flag, and calls ``install()``.
  ///
  /// Nothing of this polls, and Dispatch is not asked to run tasks. The main loop serves the main dispatch queue too.
  @_spi(ExperimentalCustomExecutors)
  public struct RunLoopExecutorFactory: ExecutorFactory {
    private static let main = MainLoopExecutor()
    private static let pool = ResidentPool()

    /// The main run loop, which also serves the main dispatch queue.
    public static var mainExecutor: any MainExecutor { main }

    /// Resident threads, as many as there are processors for the process, each started when it is first needed.
    public static var defaultExecutor: any TaskExecutor { pool }

    /// Makes these the executors of the process: the first thing that a `main` calls.
    ///
    /// Main actor jobs from before are run by the main dispatch queue, which the main loop serves; earlier tasks may
    /// still be on Swift's own threads.
    public static func install() { _createExecutors(factory: Self.self) }
  }
#endif
