// SPDX-License-Identifier: Apache-2.0

// Idioms of programs that use threads, notifications and Core Foundation, which a subclass of threads must import.
// The sections are compiled with Foundation alone and together with RunLoopKit.
import CoreFoundation
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Idioms: a thread that runs its loop
// Porting: `class Worker: Thread, @unchecked Sendable`
final class RunningThread: Thread {
  private(set) var runLoop: RunLoop!

  override func main() {
    runLoop = RunLoop.current
    runLoop.add(Port(), forMode: .common)
    runLoop.run()
  }
}

// MARK: Idioms: what a subclass of threads overrides
final class Masked: Thread, @unchecked Sendable {
  private(set) var runLoop: RunLoop?
  var isBusy = false

  override var name: String? {
    get { "masked" }
    set {}
  }
  override var isMainThread: Bool { false }
  override var isCancelled: Bool { super.isCancelled }
  override var isExecuting: Bool { isBusy }
  override var stackSize: Int {
    get { super.stackSize }
    set { super.stackSize = max(newValue, 1 << 20) }
  }
  override var description: String { "masked" }
  override func start() { super.start() }
  override func cancel() { super.cancel() }
  override func main() {}
  func join() {}
  func stop() {}
  func perform(_ body: @escaping () -> Void) { body() }
}

// MARK: Idioms: what a subclass of threads cannot override
// Porting: `qualityOfService`, `threadDictionary` and the class members of a thread, overridden
final class Overriding: Thread, @unchecked Sendable {
  override class var current: Thread { mainThread }
  override class func exit() {}
  override class func sleep(forTimeInterval interval: TimeInterval) {}
  override var threadDictionary: NSMutableDictionary { [:] }
  override var qualityOfService: QualityOfService {
    get { .default }
    set {}
  }
}

// MARK: Idioms: initializers of a thread's subclass
class BodyThread: Thread, @unchecked Sendable {
  let body: () -> Void

  init(_ body: @escaping () -> Void) {
    self.body = body
    super.init()
    name = "body"
    stackSize = 1 << 20
    qualityOfService = .utility
  }

  override func main() { body() }
}

// MARK: Idioms: values of a thread
extension Thread {
  static var counter: Int {
    get { Thread.current.threadDictionary["counter"] as? Int ?? 0 }
    set { Thread.current.threadDictionary.setObject(newValue, forKey: "counter" as NSString) }
  }

  class func store<Value: AnyObject>(_ value: Value?, key: NSString) {
    let dictionary = Thread.current.threadDictionary
    if let value { dictionary.setObject(value, forKey: key) } else { dictionary.removeObject(forKey: key) }
  }

  static func run(_ body: @escaping @Sendable () -> Void) { detachNewThread(body) }
}

// MARK: Idioms: a thread as an object
// Porting: `T: NSObject` for loops, timers, threads and ports
func keepObject() -> NSObject { Thread.current }

// MARK: Idioms: a thread as an object of the protocol
func keepObjects(_ token: NSObjectProtocol = Thread.current) -> Bool {
  let objects: [NSObjectProtocol] = [token, RunLoop.current, Thread.mainThread]
  return objects.contains { $0.isEqual(nil) || $0.hash == 0 }
}

// MARK: Idioms: an asynchronous operation with a thread
final class LoopOperation: Operation, @unchecked Sendable {
  override func start() {
    Thread.detachNewThread { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.01)) }
    Thread.sleep(forTimeInterval: 0.01)
    if Thread.current.isCancelled { cancel() }
  }
}

// MARK: Idioms: functions of Core Foundation
func runCoreFoundation() {
  CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, true)
  CFRunLoopStop(CFRunLoopGetCurrent())
  CFRunLoopWakeUp(CFRunLoopGetMain())
  CFRunLoopRun()
}

// MARK: Idioms: file handles that notify
func watch(_ handle: FileHandle) -> NSObjectProtocol {
  handle.waitForDataInBackgroundAndNotify()
  handle.readInBackgroundAndNotify(forModes: [.common])
  handle.readInBackgroundAndNotify(forModes: nil)
  return NotificationCenter.default.addObserver(forName: .NSFileHandleDataAvailable, object: handle, queue: nil) {
    ($0.object as? FileHandle)?.waitForDataInBackgroundAndNotify()
  }
}

// MARK: Idioms: notifications that are queued
func enqueue(_ queue: NotificationQueue) {
  let name = Notification.Name("changed")
  queue.enqueue(
    Notification(name: name), postingStyle: .asap, coalesceMask: [.onName, .onSender], forModes: nil)
  NotificationQueue.default.enqueue(.init(name: name, object: nil), postingStyle: .whenIdle)
  NotificationQueue.default.dequeueNotifications(matching: .init(name: name), coalesceMask: .onName)
}

// MARK: Idioms: a queue's subclass
// Porting: `class Forwarder: NotificationQueue`
class Queue: NotificationQueue {}
