// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("A thread", .timeLimit(.minutes(20)))
struct ThreadTests {
  @Test("a block runs once, on its own thread")
  func block() throws {
    let ids = Box<[Int32]>([])
    let thread = Thread.started { ids.update { $0.append(RunLoop.callingThreadID) } }
    try thread.join()
    #expect(ids.value.count == 1 && ids.value != [RunLoop.callingThreadID])
  }

  // L30
  @Test("a subclass defines the thread's work, and may call the block it was created with")
  func subclass() throws {
    let log = Log()
    let thread = Worker { log.write("block") }
    thread.log = log
    thread.start()
    try thread.join()
    #expect(log.text == "main block super.main again")
  }

  // L30
  @Test("a subclass of Thread needs no overrides")
  func emptySubclass() throws {
    class A: Thread, @unchecked Sendable {}
    let log = Log()
    let thread = A { log.write("ran") }
    thread.start()
    try thread.join()
    try A().start(andJoin: true)
    #expect(log.text == "ran" && A.current === Thread.current)
  }

  @Test("the states of a thread follow one another")
  func states() throws {
    let hold = Hold()
    let thread = Thread { hold.occupy() }
    #expect(!thread.isExecuting && !thread.isFinished && !thread.isCancelled && !thread.isMainThread)
    thread.start()
    hold.begun.wait()
    #expect(thread.isExecuting && !thread.isFinished)
    thread.cancel()
    #expect(thread.isCancelled && thread.isExecuting)
    hold.released.open()
    try thread.join()
    #expect(!thread.isExecuting && thread.isFinished && thread.isCancelled)
  }

  @Test("the block is released when it has returned, even if the thread object is retained")
  func blockReleased() throws {
    let log = Log()
    let hold = Hold()
    let token = Token(log)
    let thread = BlockThenHold { [token] in token.touch() }
    thread.hold = hold
    withExtendedLifetime(consume token) {}
    thread.start()
    hold.begun.wait()
    #expect(log.text == "released")
    hold.released.open()
    try thread.join()
  }

  @Test("the thread object is released with its last reference after the thread has finished")
  func released() throws {
    let hold = Hold()
    let end: Latch = Latch()
    let object = Box<WeakBox<Thread>?>(nil)
    do {
      let thread = EndingThread { hold.occupy() }
      thread.end = end
      object.value = WeakBox(thread)
      thread.start()
      hold.begun.wait()
    }
    #expect(object.value?.object != nil, "the thread holds its object while it runs")
    hold.released.open()
    end.wait()
    #expect(object.value?.object == nil)
  }

  @Test("threads are distinguished by identity")
  func identity() {
    let first = Thread()
    let second = Thread()
    #expect(first == first && first != second && Set([first, second, first]).count == 2)
  }

  @Test("a thread holds one object per type for other modules, and releases them at its end, on itself")
  func attachments() throws {
    let log = Log()
    let thread = Thread { log.write(Thread.current.attachment(Name.self)?.text ?? "nothing") }
    #expect(thread.attachment(Name.self) == nil)
    let first = thread.attachment { Name("first", log) }
    let objects = (0..<4).map { _ in Thread.started { _ = thread.attachment { Name("again", Log()) } } }
    for other in objects { try other.join() }
    #expect(thread.attachment { Name("second", Log()) } === first)
    let other = thread.attachment { AtEnd(log, thread) }
    #expect(thread.attachment(AtEnd.self) === other)
    withExtendedLifetime((consume first, consume other)) {}
    thread.start()
    try thread.join()
    #expect(["first first-released AtEnd-here", "first AtEnd-here first-released"].contains(log.text))
    #expect(thread.attachment(Name.self) == nil)
  }

  @Test("an object attached during the release of another one is released too")
  func lateAttachments() throws {
    let log = Log()
    let thread = Thread {}
    _ = thread.attachment { Attaching(log, thread) }
    thread.start()
    try thread.join()
    #expect(log.text == "attached late-released")
  }

  // L30
  @Test("a subclass may override whatever Foundation's class lets it override")
  func overrides() throws {
    let thread = Overriding()
    thread.name = "set"
    thread.stackSize = 7
    #expect(thread.name == "set, and asked" && thread.stackSize == 1 << 20)
    thread.start()
    try thread.join()
    #expect(thread.log.text == "start main" && thread.isFinished && !thread.isExecuting && !thread.isCancelled)
  }

  @Test("a thread's description contains its name and state")
  func description() throws {
    let thread = Thread {}
    thread.name = "worker"
    #expect(thread.debugDescription == "<Thread>{name = worker, id = 0, created}")
    thread.cancel()
    #expect(thread.debugDescription == "<Thread>{name = worker, id = 0, created, cancelled}")
    thread.start()
    #expect(thread.debugDescription == "<Thread>{name = worker, id = 0, finished, cancelled}")
  }
}

extension Thread {
  fileprivate func start(andJoin: Bool) throws {
    start()
    try join()
  }
}

private final class Worker: Thread, @unchecked Sendable {
  // Sendable: written before the start.
  var log = Log()

  override func main() {
    log.write("main")
    super.main()
    log.write("super.main")
    // The block runs only once.
    super.main()
    log.write("again")
  }
}

private final class BlockThenHold: Thread, @unchecked Sendable {
  // Sendable: written before the start.
  var hold = Hold()

  override func main() {
    super.main()
    hold.occupy()
  }
}

private final class EndingThread: Thread, @unchecked Sendable {
  // Sendable: written before the start.
  var end = Latch()

  deinit { end.open() }
}

private final class Name: Sendable {
  let text: String
  private let log: Log

  init(_ text: String, _ log: Log) {
    self.text = text
    self.log = log
  }

  deinit { log.write("\(text)-released") }
}

/// Logs the thread on which it is released.
private final class AtEnd: @unchecked Sendable {
  // Sendable: immutable.
  private let log: Log
  private unowned let thread: Thread

  init(_ log: Log, _ thread: Thread) {
    self.log = log
    self.thread = thread
  }

  deinit { log.write(Thread.current === thread ? "AtEnd-here" : "AtEnd-elsewhere") }
}

/// Attaches another object when it is released.
private final class Attaching: @unchecked Sendable {
  // Sendable: immutable.
  private let log: Log
  private unowned let thread: Thread

  init(_ log: Log, _ thread: Thread) {
    self.log = log
    self.thread = thread
  }

  deinit {
    log.write("attached")
    _ = thread.attachment { Name("late", log) }
  }
}

private final class Overriding: Thread, @unchecked Sendable {
  // Sendable: immutable.
  let log = Log()

  override var name: String? {
    get { super.name.map { $0 + ", and asked" } }
    set { super.name = newValue }
  }

  override var stackSize: Int {
    get { super.stackSize }
    set { super.stackSize = max(newValue, 1 << 20) }
  }

  override func start() {
    log.write("start")
    super.start()
  }

  override func main() { log.write("main") }
  override var isExecuting: Bool { super.isExecuting }
  override var isFinished: Bool { super.isFinished }
  override var isCancelled: Bool { super.isCancelled }
  override var isMainThread: Bool { super.isMainThread }
}
