// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// The main run loop as a program's main function.
public enum MainLoop {
  /// Runs the main loop on the main thread until a body has ended, and then ends the process.
  ///
  /// For programs with a `main` that is not `async`:
  ///
  /// ```swift
  /// @main struct Program {
  ///   static func main() { MainLoop.run { try await serve() } }
  /// }
  /// ```
  ///
  /// The loop serves the main dispatch queue and `@MainActor`, on the real main thread. The process ends with status 0
  /// when the body returns. If the body throws, the process reports the error on the standard error and ends with
  /// status 1.
  ///
  /// - Precondition: The calling thread is the process's first. In a program with an `async` main that thread is parked
  ///   forever, and the main actor lives on another.
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
    // A stop by other code ends one run.
    while RunLoop.main.runUntilStopped() == .stopped {}
    fatalError("the main dispatch queue cannot be served: the process has no descriptor left for it")
  }
}
