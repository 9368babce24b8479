// SPDX-License-Identifier: Apache-2.0

package import Glibc
package import RunLoopCore

/// Threads with a run loop, for tests of items that the kernel wakes.
package enum SourceRig {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
      self.run = run
    }
  }

  /// A thread that can be joined, after which its loop has ended.
  package struct Running: Sendable {
    package let thread: pthread_t

    package func join() { pthread_join(thread, nil) }
  }

  package static func start(_ body: @escaping @Sendable () -> Void) -> Running {
    var thread = pthread_t()
    let context = Unmanaged.passRetained(Body(body)).toOpaque()
    let answer = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        // Dispatch's threads, on which tests run, block most signals.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, context)
    precondition(answer == 0)
    return Running(thread: thread)
  }

  /// Runs `body` with the loop of a new thread, and waits for the thread to end.
  package static func onThread(_ body: @escaping @Sendable (RunLoop) -> Void) {
    start { body(RunLoop.current) }.join()
  }

  /// Starts a thread whose loop runs until it is stopped.
  ///
  /// Returns once the loop runs, because a stop before the run would be forgotten.
  package static func startLoop() -> (thread: Running, loop: RunLoop) {
    let made = Notes<RunLoop>()
    let thread = start {
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      loop.perform { made.add(loop) }
      loop.runUntilStopped()
    }
    waitUntil { made.count > 0 }
    return (thread, made.all[0])
  }
}

extension RunLoop {
  /// Runs until a condition holds.
  ///
  /// If the loop has nothing left to run, the process ends: this target does not link the testing library, and a test
  /// that continued would wait forever.
  package func run(
    _ mode: Mode = .default, until isDone: () -> Bool, file: StaticString = #fileID, line: UInt = #line
  ) {
    while !isDone() {
      let result = run(mode: mode, for: .unlimited, returnAfterSourceHandled: true)
      precondition(result == .handledSource || isDone(), "nothing came: \(result)", file: file, line: line)
    }
  }

  /// Runs what is ready.
  package func drain(_ mode: Mode = .default) {
    while run(mode: mode, for: .zero, returnAfterSourceHandled: true) == .handledSource {}
  }
}

/// Values that call-outs record for their test.
package final class Notes<Element: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var stored: [Element] = []

  package init() {}

  package func add(_ element: Element) { lock.withLock { stored.append(element) } }

  package func add(contentsOf elements: [Element]) { lock.withLock { stored += elements } }

  package var all: [Element] { lock.withLock { stored } }

  package var count: Int { lock.withLock { stored.count } }
}
