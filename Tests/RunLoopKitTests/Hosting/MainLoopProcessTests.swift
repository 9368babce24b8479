// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import TestSupport
import Testing

/// Each test needs a process that has not created a loop.
@Suite("The main loop and Core Foundation's, in a process of their own", .timeLimit(.minutes(20)))
struct MainLoopProcessTests {
  private func lines(_ arguments: String...) throws -> [String] {
    let (status, output) = try runProgram("main-loops", arguments)
    #expect(status == 0)
    return output.split(separator: "\n").map(String.init)
  }

  @Test("a loop on virtual time neither serves Core Foundation's nor is served by it", .rule(.m32))
  func virtualTime() throws {
    #expect(
      try lines("virtual") == [
        "serves false", "run finished: [\"ours\"]", "their run timedOut: [\"theirs\"]", "waiting false",
        "after it finished: [\"theirs\", \"ours\"]", "the run loop's time is not the system's",
      ])
  }

  @Test(
    "a forked child has its own main loop, which neither serves nor wakes its parent's loops", .rule(.m17, .m32)
  )
  func fork() throws {
    #expect(try lines("forked") == ["served true", "parent stopped: E BT BS BW AW exited(0) X"])
  }

  @Test("a Core Foundation main loop that no other code uses has three descriptors, no thread and no run", .rule(.m32))
  func alone() throws {
    #expect(
      try lines("alone") == [
        "stopped", "serves true", "descriptors its own", "threads 0", "stopped", "then serves true", "then false",
      ])
  }

  @Test("a timer that another thread adds to Core Foundation's main loop ends a sleep of the main loop", .rule(.m32))
  func elsewhere() throws {
    #expect(
      try lines("elsewhere") == ["stopped: E BT BS BW AW BT BS BW T AW X"])
  }

  @Test(
    "a lack of descriptors for Core Foundation's main loop is reported, and the next item tries again", .rule(.m32))
  func lacking() throws {
    #expect(try lines("lacking") == ["reported 1", "1 2"])
  }

  @Test("Core Foundation's main loop is served even if Core Foundation's own calls make it after a thousand passes")
  func late() throws {
    #expect(try lines("late") == ["serves true", "stopped", "then serves true"])
  }

  @Test("waking Core Foundation's main loop while it has nothing does not keep a guest busy", .rule(.m32))
  func empty() throws {
    #expect(try lines("empty") == ["quiet"])
  }

  @Test(
    "runs of Core Foundation's loop that a guest's call-out or its host starts serve the main loop", .rule(.m32),
    arguments: dlopen("libglib-2.0.so.0", RTLD_NOW) != nil ? ["poll", "glib"] : ["poll"])
  func runsBesideGuest(host: String) throws {
    let everything = "timer hand-off queue"
    #expect(
      try lines("waits", host) == [
        "in a call-out: \(everything)", "in a run: other hosted timer stopped, then as before",
        "between services: \(everything)", "then waiting true", "afterwards: \(everything)",
        "nested: [ theirs stopped ( \(everything) ) guest ] stopped", "performed",
      ])
  }

  @Test("a stop that creates Core Foundation's main loop as its argument ends the main loop's run")
  func stopThatMakes() throws {
    #expect(try lines("stopped") == ["stopped", "lost false"])
  }
}
