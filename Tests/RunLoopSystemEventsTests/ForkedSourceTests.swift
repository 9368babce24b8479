// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestRules
import TestSupport
import Testing

@testable import RunLoopSystemEvents

/// Each test forks in its own process, which has few threads.
@Suite("Sources in forked children", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct ForkedSourceTests {
  @Test("a child receives its own signals, and none of its parent's", .rule(.m17))
  func signals() async {
    await #expect(processExitsWith: .success) {
      SourceRig.onThread { loop in
        do {
          let heard = Notes<Int>()
          let source = try SignalSource(signal: SIGUSR1) { _, event in heard.add(event.count) }
          try loop.add(source, forMode: .default)
          // The signal is pending, and only the parent's loop may report it.
          kill(getpid(), SIGUSR1)
          let code = inForkedChild {
            guard !source.isValid, (try? RunLoop.current.add(source, forMode: .default)) == nil
            else { return 1 }
            source.invalidate()
            let own = Notes<Int>()
            let ownSource = try SignalSource(signal: SIGUSR1) { _, event in own.add(event.count) }
            try RunLoop.current.add(ownSource, forMode: .default)
            kill(getpid(), SIGUSR1)
            RunLoop.current.run { own.count > 0 }
            return own.all == [1] ? 0 : 2
          }
          #expect(code == .exited(0))
          loop.run { heard.count > 0 }
          loop.drain()
          #expect(heard.all == [1])
          source.invalidate()
        } catch { Issue.record(error) }
      }
    }
  }

  @Test("a child receives none of the file changes that its parent waits for", .rule(.m17))
  func files() async throws {
    await #expect(processExitsWith: .success) {
      let scratch = Scratch()
      SourceRig.onThread { loop in
        do {
          let told = Notes<String>()
          var source: FileChangeSource? = try FileChangeSource(path: .init(scratch.path)) { _, changes in
            for change in changes { told.add(change.path.string) }
          }
          if let source { try loop.add(source, forMode: .default) }
          let code = inForkedChild {
            guard let inherited = source, !inherited.isValid, inherited.watchCount == 0 else { return 1 }
            guard (try? RunLoop.current.add(inherited, forMode: .default)) == nil else {
              return 2
            }
            inherited.invalidate()
            source = nil
            return mkdir(scratch("inner"), 0o700)
          }
          #expect(code == .exited(0) && source?.watchCount == 1)
          loop.run { told.count > 0 }
          #expect(told.all == [scratch("inner")])
          source?.invalidate()
        } catch { Issue.record(error) }
      }
    }
  }

  @Test("a child waits for its own children, and not for its parent's", .rule(.m17))
  func children() async {
    await #expect(processExitsWith: .success) {
      let first = spawn("/bin/sleep", "1000")
      SourceRig.onThread { loop in
        do {
          let ends = Notes<ChildProcessSource.End>()
          let source = try ChildProcessSource(process: first) { _, end in ends.add(end) }
          try loop.add(source, forMode: .default)
          let code = inForkedChild {
            guard !source.isValid else { return 1 }
            do throws(ChildProcessError) {
              _ = try ChildProcessSource(process: first) { _, _ in }
              return 2
            } catch { guard error == .notAChild(first) else { return 3 } }
            let ends = Notes<ChildProcessSource.End>()
            let own = try ChildProcessSource(process: spawn("/bin/sh", "-c", "exit 7")) { _, end in ends.add(end) }
            try RunLoop.current.add(own, forMode: .default)
            RunLoop.current.run { ends.count > 0 }
            return ends.all == [.ended(.exited(code: 7))] ? 0 : 4
          }
          #expect(code == .exited(0))
          kill(first, SIGKILL)
          loop.run { ends.count > 0 }
          #expect(ends.all == [.ended(.signalled(signal: SIGKILL, coreDumped: false))])
        } catch { Issue.record(error) }
      }
    }
  }
}
