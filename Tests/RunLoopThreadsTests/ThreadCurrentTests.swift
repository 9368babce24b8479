import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("The current thread", .timeLimit(.minutes(5)))
struct ThreadCurrentTests {
  @Test("a thread finds its own object, and its own loop")
  func own() throws {
    let found = Box<(Thread, RunLoop)?>(nil)
    let thread = Thread { found.value = (Thread.current, RunLoop.current) }
    let loop = try #require(thread.runLoop)
    thread.start()
    try thread.join()
    #expect(found.value?.0 === thread && found.value?.1 === loop)
  }

  // L27
  @Test("a thread that was made by other means has one object, which executes and ends with it")
  func foreign() throws {
    let object = try #require(
      onNewThread {
        let thread = Thread.current
        #expect(thread === Thread.current && thread.isExecuting && !thread.isMainThread && !thread.isFinished)
        #expect(thread.runLoop === RunLoop.current)
        #expect(throws: ThreadError.self) { try thread.tryStart() }
        return thread
      })
    #expect(object.isFinished && !object.isExecuting && object.runLoop == nil)
    try object.join()
  }

  @Test("a loop that a foreign thread has made before is its object's")
  func foreignLoop() {
    let same = onNewThread {
      let loop = RunLoop.current
      return Thread.current.runLoop === loop && RunLoop.current === loop
    }
    #expect(same == true)
  }

  @Test("a foreign thread takes work as any other")
  func foreignWork() throws {
    let box = Box<Thread?>(nil)
    let made = Latch()
    let runner = Thread.started {
      onNewThread {
        box.value = Thread.current
        RunLoop.current.add(Port(), forMode: .default)
        made.open()
        RunLoop.current.runUntilStopped()
      }
    }
    made.wait()
    let thread = try #require(box.value)
    #expect(try thread.performAndWait { Thread.current === thread })
    thread.name = "foreign"
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    #expect(System.name(ofThread: id) == "foreign")
    try thread.stopLoop()
    try runner.join()
    #expect(throws: ThreadError.finished(thread: "thread \"foreign\"")) { try thread.perform {} }
  }

  @Test("the object of a foreign thread goes with it")
  func foreignReleased() throws {
    let object = onNewThread { WeakBox(Thread.current) }
    #expect(object.object == nil)
  }

  @Test("the main thread's object is to be had from any thread, and is one")
  func main() {
    #expect(Thread.main === Thread.mainThread && Thread.main.isMainThread && Thread.main.isExecuting)
    #expect(Thread.main.runLoop === RunLoop.main)
    #expect(onNewThread { Thread.main.isMainThread && Thread.current !== Thread.main } == true)
  }

  @Test("after the end of its object a thread is given one that has finished, and nothing is left behind")
  func lateDestructor() throws {
    let seen = Late.seen
    onNewThread {
      _ = Thread.current
      Late.install()
    }
    #expect(seen.value == ["executing", "executing", "finished"])
  }
}

/// A thread-specific destructor that asks in three rounds, each time after the one that ends the object.
private enum Late {
  static let seen = Box<[String]>([])

  static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key) { value in
      let thread = Thread.current
      Late.seen.update { $0.append(thread.isFinished ? "finished" : "executing") }
      if thread.isFinished { #expect(thread.runLoop == nil && RunLoop.current.hasEnded) }
      let round = Int(bitPattern: value)
      if round < 3 { pthread_setspecific(Late.key, UnsafeRawPointer(bitPattern: round + 1)) }
    }
    return key
  }()

  static func install() { pthread_setspecific(key, UnsafeRawPointer(bitPattern: 1)) }
}
