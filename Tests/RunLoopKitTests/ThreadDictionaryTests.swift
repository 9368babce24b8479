// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import RunLoopThreads
import Testing
import TestSupport

@Suite("The dictionary of a thread", .timeLimit(.minutes(20)))
struct ThreadDictionaryTests {
  @Test("a thread's dictionary is always the same object, and keeps its entries")
  func same() throws {
    try onThread {
      let dictionary = Thread.current.threadDictionary
      dictionary["a"] = 1
      Thread.current.threadDictionary["b"] = "two"
      #expect(Thread.current.threadDictionary === dictionary)
      #expect(Thread.current.threadDictionary["a"] as? Int == 1 && dictionary["b"] as? String == "two")
    }
  }

  @Test("a thread's dictionary is available before its start, and each thread has its own")
  func own() throws {
    let log = Log()
    let first = Thread { log.write(Thread.current.threadDictionary["name"] as? String ?? "none") }
    let second = Thread { log.write(Thread.current.threadDictionary["name"] as? String ?? "none") }
    first.threadDictionary["name"] = "first"
    for thread in [first, second] {
      thread.start()
      try thread.join()
    }
    #expect(log.text == "first none")
  }

  @Test("many threads that request a thread's dictionary first all get the same")
  func race() throws {
    for _ in 0..<20 {
      let thread = Thread {}
      let found = Box<Set<ObjectIdentifier>>([])
      let lock = NSLock()
      let askers = (0..<4).map { _ in
        Thread {
          let dictionary = thread.threadDictionary
          lock.withLock { _ = found.value.insert(ObjectIdentifier(dictionary)) }
        }
      }
      for asker in askers { asker.start() }
      for asker in askers { try asker.join() }
      #expect(found.value == [ObjectIdentifier(thread.threadDictionary)])
    }
  }

  @Test(
    "the dictionary is released on the thread at its end, after body and notification", arguments: [false, true])
  func released(leaves: Bool) throws {
    let log = Log()
    let listener = Listener(.NSThreadWillExit) { notification in
      guard let thread = notification.object as? Thread, thread.name == "dictionary \(leaves)" else { return }
      log.write("notified with \(thread.threadDictionary.count)")
    }
    let thread = Thread {
      Thread.current.threadDictionary["probe"] = Probe(log, Thread.current)
      log.write("body")
      if leaves { Thread.exit() }
    }
    thread.name = "dictionary \(leaves)"
    thread.start()
    try thread.join()
    withExtendedLifetime(listener) {}
    #expect(log.text == "body notified with 1 released here")
    #expect(thread.threadDictionary.count == 0)
  }

  @Test("an object released with the dictionary may still read and change it")
  func reentrant() throws {
    let log = Log()
    try onThread { Thread.current.threadDictionary["again"] = Again(log, 3) }
    #expect(log.text == "3 2 1 0")
  }

  @Test("a thread created by other code has a dictionary too, which ends with it")
  func foreign() {
    let log = Log()
    onNewThread {
      let thread = Thread.current
      thread.threadDictionary["probe"] = Probe(log, thread)
      #expect(Thread.current.threadDictionary.count == 1)
    }
    #expect(log.text == "released here")
  }
}

/// Logs its release, and whether that happens on its thread.
private final class Probe: @unchecked Sendable {
  // Sendable: immutable.
  private let log: Log
  private unowned let thread: Thread

  init(_ log: Log, _ thread: Thread) {
    self.log = log
    self.thread = thread
  }

  deinit { log.write("released " + (Thread.current === thread ? "here" : "elsewhere")) }
}

/// Adds another such object to the thread's dictionary when it is released.
private final class Again {
  private let log: Log
  private let left: Int

  init(_ log: Log, _ left: Int) {
    self.log = log
    self.left = left
  }

  deinit {
    log.write("\(left)")
    if left > 0 { Thread.current.threadDictionary["again"] = Again(log, left - 1) }
  }
}
