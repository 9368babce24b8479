// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import Glibc
import RunLoopKit

import class RunLoopCore.RunLoop
import class RunLoopThreads.ResidentThread
import class RunLoopThreads.Thread

/// A way in which a thread is created and ends.
struct Kind: Sendable {
  let name: String
  /// Runs a body on such a thread, and waits for the thread to end.
  let live: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void

  private init(_ name: String, _ live: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
    self.name = name
    self.live = live
  }

  static let all = [
    Kind("Thread") { body in join(Thread(block: body)) },
    Kind("Thread that exits") { body in
      join(
        Thread {
          body()
          Thread.exit()
        })
    },
    Kind("Thread that exits in its loop") { body in
      join(
        Thread {
          body()
          RunLoop.current.perform { Thread.exit() }
          RunLoop.current.run(mode: .default, for: .seconds(1000))
        })
    },
    Kind("Thread that leaves by pthread_exit") { body in
      join(
        Thread {
          body()
          pthread_exit(nil)
        })
    },
    Kind("ResidentThread") { body in
      let thread = resident()
      do {
        try thread.performAndWait { body() }
        thread.stop(.immediately)
        try thread.join()
      } catch {
        fail("\(error)")
      }
    },
    Kind("foreign pthread") { body in live(body) },
    Kind("foreign pthread that exits") { body in
      live {
        body()
        Thread.exit()
      }
    },
  ]

  private static func resident() -> ResidentThread {
    do { return try ResidentThread() } catch { fail("\(error)") }
  }

  private static func join(_ thread: Thread) {
    thread.start()
    do { try thread.join() } catch { fail("\(error)") }
  }

  /// Runs a body on a thread created with `pthread_create`, and waits for the thread to end.
  static func live(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let answer = pthread_create(&thread, nil, pthreadMain, Unmanaged.passRetained(Body(body)).toOpaque())
    guard answer == 0 else { fail("no thread: \(answer)") }
    pthread_join(thread, nil)
  }
}

private final class Body: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private nonisolated func pthreadMain(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let pointer else { return nil }
  // The creating thread keeps the body until then: a body that exits the thread never returns here.
  Unmanaged<Body>.fromOpaque(pointer).takeUnretainedValue().body()
  Unmanaged<Body>.fromOpaque(pointer).release()
  return nil
}

func fail(_ message: String) -> Never {
  say("failed: \(message)")
  _exit(3)
}

/// Writes a line without buffering, as the next step may end the process.
func say(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}
