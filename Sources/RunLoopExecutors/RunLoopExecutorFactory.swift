// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  @_spi(ExperimentalCustomExecutors) import _Concurrency

  /// An executor factory that runs the main actor on the main run loop and other tasks on resident threads.
  ///
  /// ```swift
  /// typealias DefaultExecutorFactory = RunLoopExecutorFactory
  /// ```
  ///
  /// In the module of an `async` main, the compiler finds the factory under that name.
  ///
  /// Swift 6.3 looks for it only with `-Xfrontend -disable-availability-checking`, and emits no diagnostic without the
  /// flag. A program whose `main` is not `async` needs no flag and calls ``install()``.
  ///
  /// Nothing polls, and tasks do not run on Dispatch. The main loop also serves the main dispatch queue.
  @_spi(ExperimentalCustomExecutors)
  public struct RunLoopExecutorFactory: ExecutorFactory {
    private static let main = MainLoopExecutor()
    private static let pool = ResidentPool()

    /// The main run loop, which also serves the main dispatch queue.
    public static var mainExecutor: any MainExecutor { main }

    /// Resident threads, up to the number of processors that the process may use, each started when first needed.
    public static var defaultExecutor: any TaskExecutor { pool }

    /// Installs these executors for the process.
    ///
    /// Call it first in `main`.
    ///
    /// The main dispatch queue runs main actor jobs from before the call, and the main loop serves that queue; earlier
    /// tasks may still be on Swift's own threads.
    public static func install() { _createExecutors(factory: Self.self) }
  }
#endif
