// SPDX-License-Identifier: Apache-2.0

// Foundation's thread API on Linux. The sections are compiled with Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Thread: making one
func makeThreads() {
  let thread = Thread { print("on it") }
  thread.start()
  Thread(block: { Thread.sleep(forTimeInterval: 0.1) }).start()
  Thread.detachNewThread { print("on a detached one") }
  let bare = Thread()
  bare.main()
  thread.cancel()
}

// MARK: Thread: its members
func members(of thread: Thread) -> String {
  thread.name = "worker"
  thread.stackSize = 1 << 20
  let name: String? = thread.name
  let size: Int = thread.stackSize
  let state: [Bool] = [thread.isExecuting, thread.isFinished, thread.isCancelled, thread.isMainThread]
  return "\(name ?? "") \(size) \(state)"
}

// MARK: Thread: its quality of service
func quality(of thread: Thread) -> Bool {
  thread.qualityOfService = .utility
  let quality: QualityOfService = thread.qualityOfService
  return quality == .userInitiated
}

// MARK: Thread: its dictionary
func dictionary() -> Any? {
  let dictionary: NSMutableDictionary = Thread.current.threadDictionary
  dictionary["key"] = 1
  Thread.current.threadDictionary["other"] = "value"
  return Thread.current.threadDictionary["key"]
}

// MARK: Thread: the calling thread
func calling() -> Bool {
  let thread: Thread = .current
  let main: Thread = Thread.mainThread
  return thread == main || thread === main || Thread.isMainThread || Thread.isMultiThreaded()
}

// MARK: Thread: the main thread by its name on Apple's systems
func mainThread() -> Thread { Thread.main }

// MARK: Thread: sleeping and leaving
func sleepAndLeave() {
  Thread.sleep(until: Date(timeIntervalSinceNow: 0.1))
  Thread.sleep(until: .distantPast)
  Thread.sleep(forTimeInterval: 0.1)
  Thread.exit()
}

// MARK: Thread: the stack
func stack() -> Int {
  let addresses: [NSNumber] = Thread.callStackReturnAddresses
  let symbols: [String] = Thread.callStackSymbols
  return addresses.count + symbols.count
}

// MARK: Thread: notifications
func threadNotifications() -> [NSNotification.Name] {
  _ = NotificationCenter.default.addObserver(forName: .NSThreadWillExit, object: nil, queue: nil) { _ in }
  return [.NSThreadWillExit, .NSWillBecomeMultiThreaded, .NSDidBecomeSingleThreaded]
}

// MARK: Thread: identity
func compare(_ thread: Thread, _ other: Thread) -> Bool {
  let names: [Thread: String] = [thread: "thread", other: "other"]
  return thread == other || Set([thread, other]).count == names.count
}

// MARK: Thread: a subclass
class Worker: Thread {
  override func main() { print(Thread.current.name ?? "") }
}

// MARK: Thread: a subclass with state
final class Counter: Thread {
  private var count = 0

  override init() {
    super.init()
    name = "counter"
    stackSize = 1 << 20
  }

  override func main() {
    while !isCancelled && count < 3 { count += 1 }
  }

  override func start() { super.start() }
  override func cancel() { super.cancel() }
}

// MARK: Thread: a subclass that says again that it is Sendable
final class Restated: Thread, @unchecked Sendable {
  private var count = 0

  override func main() {
    while !isCancelled && count < 3 { count += 1 }
  }
}

// MARK: Thread: a subclass that says how it is described and compared
final class Titled: Thread, @unchecked Sendable {
  private var title = "titled"

  override var description: String { title }
  override var hash: Int { title.hashValue }
  override func isEqual(_ object: Any?) -> Bool { (object as? Titled)?.title == title }
}

// MARK: Thread: a subclass with members of the names that ours has beside Foundation's
final class LoopThread: Thread, @unchecked Sendable {
  var runLoop: RunLoop!
  var configuration = ["retries": 3]
  var startError: String?
  var rejections = 0
  private let ended = DispatchSemaphore(value: 0)

  func tryStart() -> Bool {
    start()
    return startError == nil
  }

  func join() -> Int {
    ended.wait()
    return rejections
  }

  override func main() {
    runLoop = RunLoop.current
    configuration["retries"] = nil
    ended.signal()
  }
}

func loopThreadPath() -> ReferenceWritableKeyPath<LoopThread, [String: Int]> { \.configuration }

func use(_ thread: LoopThread) -> Int {
  thread[keyPath: loopThreadPath()]["retries"] = 4
  return thread.tryStart() ? thread.join() : thread.configuration.count
}

func name<Worker: Thread>(_ worker: Worker) -> String? {
  worker.name = "generic"
  return worker.isFinished ? nil : worker.name
}

// MARK: Thread: what is printed of it
func threadText(_ thread: Thread) -> String { "\(thread) \(thread.description) \(thread.debugDescription)" }

// MARK: Thread: as an object
func threadObject(_ thread: Thread) -> Bool { thread.isEqual(thread) && thread.hash == thread.hashValue }

// MARK: Thread: cancelled by another thread
func cancel(_ thread: Thread, on queue: DispatchQueue) {
  queue.async { thread.cancel() }
}

// MARK: Thread: the calling thread in a task
func threadInTask() async -> Bool {
  let thread = Thread.current
  return Thread.isMainThread || thread.isCancelled
}
