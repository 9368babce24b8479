// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopKit
import Synchronization

import class RunLoopThreads.ResidentThread
import class RunLoopThreads.Thread

// Runs each use of Foundation at one place at the end of one kind of thread, each on its own thread, and prints each
// case before it begins: the last line names the case that crashed the process.
//
//   thread-ends list
//   thread-ends KIND PLACE

let arguments = CommandLine.arguments
let ownPlaces = ["block of the thread", "subclass"]
let residentPlaces = ["on stop"]

func run(_ name: String, _ live: (@escaping @Sendable () -> Void) -> Void) {
  for use in Use.all {
    say("\(name): \(use.name)")
    let calls = Counted()
    live {
      calls.add()
      use.body()
    }
    guard calls.value == 1 else { fail("\(name): \(use.name) was made \(calls.value) times") }
  }
  say("done")
}

/// Counts the calls of a use.
final class Counted: Sendable {
  private let count = Atomic<Int>(0)
  func add() { count.wrappingAdd(1, ordering: .relaxed) }
  var value: Int { count.load(ordering: .acquiring) }
}

/// Uses Core Foundation in every way before the thread ends.
@Sendable func useCoreFoundation() { for use in Use.all { use.body() } }

final class EndingThread: RunLoopThreads.Thread, @unchecked Sendable {
  // Sendable: written before the start.
  let use: @Sendable () -> Void

  init(_ use: @escaping @Sendable () -> Void) {
    self.use = use
    super.init()
  }

  override func main() { useCoreFoundation() }

  deinit { use() }
}

/// Joins a thread without keeping a reference to it.
func join(_ thread: RunLoopThreads.Thread) {
  do { try thread.join() } catch { fail("\(error)") }
}

func runMore(_ kind: String, _ place: String) {
  run("\(kind), \(place)") { use in
    switch place {
    case "on stop":
      do {
        let thread = try ResidentThread(onStop: use)
        try thread.performAndWait { useCoreFoundation() }
        thread.stop()
        try thread.join()
      } catch {
        fail("\(error)")
      }
    case "subclass":
      // The thread holds the last reference to itself.
      let ended = DispatchSemaphore(value: 0)
      EndingThread {
        use()
        ended.signal()
      }.start()
      ended.wait()
    default:
      let witness = Witness(use)
      let thread = Thread {
        useCoreFoundation()
        witness.touch()
        Thread.exit()
      }
      withExtendedLifetime(consume witness) {}
      thread.start()
      join(thread)
    }
  }
}

switch arguments.count {
case 2:
  for kind in Kind.all { for place in Place.all { say("\(kind.name)\t\(place.name)") } }
  for place in ownPlaces { say("Thread\t\(place)") }
  for place in residentPlaces { say("ResidentThread\t\(place)") }
  for measure in Measure.all { say("measure\t\(measure.name)") }
case 3:
  let (kindName, placeName) = (arguments[1], arguments[2])
  if let measure = Measure.all.first(where: { $0.name == placeName }) {
    run(placeName) { use in
      Kind.live {
        useCoreFoundation()
        measure.prepare(use)
      }
    }
  } else if let kind = Kind.all.first(where: { $0.name == kindName }),
    let place = Place.all.first(where: { $0.name == placeName })
  {
    run("\(kindName), \(placeName)") { use in
      kind.live {
        useCoreFoundation()
        place.prepare(use)
      }
    }
  } else {
    runMore(kindName, placeName)
  }
default: fail("usage: thread-ends list | thread-ends KIND PLACE")
}
