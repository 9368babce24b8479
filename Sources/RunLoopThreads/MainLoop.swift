// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// A namespace for running the main loop as a program's main function.
public enum MainLoop {
  /// Runs the main loop on the main thread until an asynchronous body returns, and then exits the process.
  ///
  /// Use it in programs whose `main` is not `async`:
  ///
  /// ```swift
  /// @main struct Program {
  ///   static func main() { MainLoop.run { try await serve() } }
  /// }
  /// ```
  ///
  /// The loop serves the main dispatch queue and `@MainActor` on the process's main thread.
  ///
  /// The process exits with status 0 when the body returns. If the body throws, the process writes the error to
  /// standard error and exits with status 1.
  ///
  /// - Precondition: The calling thread is the process's first. In a program with an `async` main, that thread is
  ///   parked forever and the main actor runs on another thread.
  public static func run(_ body: @escaping @MainActor @Sendable () async throws -> Void) -> Never {
    guard RunLoop.isMainThread else {
      fatalError(
        "MainLoop.run was called on \(Thread.current.label) and needs the main thread, which a program with an `async` main has given up"
      )
    }
    Task { @MainActor in
      do {
        try await body()
        exit(0)
      } catch {
        var line = "\(error)\n"
        line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(1)
      }
    }
    // If other code stops the loop, only the current run ends.
    while RunLoop.main.runUntilStopped() == .stopped {}
    fatalError("the main dispatch queue cannot be served: the process has no descriptor left for it")
  }
}
