// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import Testing
  import TestSupport

  @Suite("A program with an async main on our executors")
  struct ExecutorMainTests {
    @Test(
      "a program with an async main runs it on the main thread, and ends with it",
      arguments: [
        "identity", "sleeps", "cancelled", "isolation", "tasks", "blocked", "preference", "until", "scheduled",
        "nested",
        "leaves",
      ])
    func runs(_ name: String) throws {
      let (status, output) = try runProgram("executor-main", [name])
      #expect(status == 0 && output == "ok\n", "\(status) \(output)")
    }

    static let uses = [
      "queue", "later", "source", "block", "timer", "thread", "actor", "sleep", "yield", "detached", "dispatch",
    ]

    @Test("any use of the main thread may come first, and any other next", arguments: uses)
    func first(_ name: String) throws {
      for other in Self.uses {
        let (status, output) = try runProgram("executor-main", ["first", name, other])
        #expect(status == 0 && output == "ok\n", "\(other): \(status) \(output)")
      }
    }

    @Test("a program with an async main ends in order when the main loop is stopped outside a nested run")
    func stopped() throws {
      let (status, output) = try runProgram("executor-main", ["stopped"])
      #expect(status == 0 && output.isEmpty, "\(status) \(output)")
    }

    @Test("a program whose async main throws ends with the error, like any other")
    func throwing() throws {
      let (status, output) = try runProgram("executor-main", ["throws"])
      #expect(status != 0 && output.isEmpty, "\(status) \(output)")
    }
  }
#endif
