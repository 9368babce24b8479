// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Glibc
  import RunLoopCore
  import TestSupport
  import Testing

  @testable import RunLoopSystemEvents

  @Suite("Directories that cannot be read completely", .timeLimit(.minutes(20)))
  struct DirectoryScanTests {
    @Test("a tree with a directory that cannot be read completely is rejected, not watched in part")
    func unread() throws {
      let scratch = Scratch()
      try #require(mkdir(scratch("inner"), 0o700) == 0)
      let plan = FaultPlan()
      plan.plan(.directoryRead, nil, .fails(EIO))
      plan.rule {
        let error = SystemError(call: "readdir", number: EIO)
        #expect(throws: FileChangeError.cannotWatch(.init(scratch.path), error)) {
          _ = try FileChangeSource(path: .init(scratch.path), recursive: true) { _, _ in }
        }
      }
      #expect(plan.isUsedUp)
    }
  }
#endif
