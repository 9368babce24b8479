import Glibc
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("A thread", .timeLimit(.minutes(5)))
struct ThreadTests {
  @Test("a block runs once, on a thread of its own")
  func block() throws {
    let ids = Box<[Int32]>([])
    let thread = Thread.started { ids.update { $0.append(RunLoop.callingThreadID) } }
    try thread.join()
    #expect(ids.value.count == 1 && ids.value != [RunLoop.callingThreadID])
  }

  // L30
  @Test("a subclass says what the thread does, and may call what it was made with")
  func subclass() throws {
    let log = Log()
    let thread = Worker { log.write("block") }
    thread.log = log
    thread.start()
    try thread.join()
    #expect(log.text == "main block super.main again")
  }

  // L30
  @Test("a subclass needs nothing")
  func emptySubclass() throws {
    class A: Thread, @unchecked Sendable {}
    let log = Log()
    let thread = A { log.write("ran") }
    thread.start()
    try thread.join()
    try A().start(andJoin: true)
    #expect(log.text == "ran" && A.current === Thread.current)
  }

  @Test("the states follow one another")
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

  @Test("the block is released when it has returned, though the thread is kept")
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

  @Test("the object goes with the last reference after the thread has finished")
  func released() throws {
    let hold = Hold()
    let end: Gate = Gate()
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

  @Test("threads are told apart by identity")
  func identity() {
    let first = Thread()
    let second = Thread()
    #expect(first == first && first != second && Set([first, second, first]).count == 2)
  }

  @Test("the slot keeps one value, from any thread, and lets go of it at the end")
  func slot() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread {
      hold.occupy()
      log.write(Thread.current.slot as? String ?? "nothing")
      Thread.current.slot = Token(log)
    }
    thread.slot = "first"
    thread.start()
    hold.begun.wait()
    thread.slot = "second"
    hold.released.open()
    try thread.join()
    #expect(log.text == "second released" && thread.slot == nil)
  }

  @Test("a description tells the name and the state")
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
    // The block runs once.
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
  var end = Gate()

  deinit { end.open() }
}
