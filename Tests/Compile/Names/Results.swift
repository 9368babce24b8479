// SPDX-License-Identifier: Apache-2.0

// Calls without a result in Foundation, in every context other than a statement. The sections are compiled with
// Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Results: a protocol for tests, and the loop's conformance
protocol TickScheduling {
  func add(_ timer: Timer, forMode mode: RunLoop.Mode)
  func add(_ port: Port, forMode mode: RunLoop.Mode)
  func remove(_ port: Port, forMode mode: RunLoop.Mode)
}

extension RunLoop: TickScheduling {}

// MARK: Results: a protocol for work, and the loop's conformance
protocol WorkPosting: AnyObject {
  func perform(_ block: @escaping @Sendable () -> Void)
  func perform(inModes modes: [RunLoop.Mode], block: @escaping @Sendable () -> Void)
}

extension RunLoop: WorkPosting {}

func post(to loop: any WorkPosting) { loop.perform { print("posted") } }

// MARK: Results: a protocol for everything that a loop does
protocol LoopLike {
  func run()
  func run(until limitDate: Date)
  func run(mode: RunLoop.Mode, before limitDate: Date) -> Bool
  func acceptInput(forMode mode: String, before limitDate: Date)
  func limitDate(forMode mode: RunLoop.Mode) -> Date?
  var currentMode: RunLoop.Mode? { get }
  static var main: RunLoop { get }
  static var current: RunLoop { get }
}

extension RunLoop: LoopLike {}

// MARK: Results: a protocol for everything that a timer does
protocol TickSource: AnyObject {
  static func scheduledTimer(
    withTimeInterval interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
  ) -> Timer
  func fire()
  func invalidate()
  var fireDate: Date { get set }
  var timeInterval: TimeInterval { get }
  var tolerance: TimeInterval { get set }
  var isValid: Bool { get }
  var userInfo: Any? { get }
}

extension Timer: TickSource {}

// MARK: Results: a protocol for everything that a thread does
protocol ThreadLike: AnyObject {
  static func exit()
  static func detachNewThread(_ block: @escaping @Sendable () -> Void)
  static func sleep(until date: Date)
  static func sleep(forTimeInterval interval: TimeInterval)
  static func isMultiThreaded() -> Bool
  static var current: Thread { get }
  static var mainThread: Thread { get }
  static var isMainThread: Bool { get }
  static var callStackSymbols: [String] { get }
  static var callStackReturnAddresses: [NSNumber] { get }
  func start()
  func cancel()
  func main()
  var name: String? { get set }
  var stackSize: Int { get set }
  var qualityOfService: QualityOfService { get set }
  var threadDictionary: NSMutableDictionary { get }
  var isExecuting: Bool { get }
  var isFinished: Bool { get }
  var isCancelled: Bool { get }
  var isMainThread: Bool { get }
}

extension Thread: ThreadLike {}

// MARK: Results: a protocol for everything that a port does
protocol PortLike: AnyObject {
  func setDelegate(_ anObject: (any PortDelegate)?)
  func delegate() -> (any PortDelegate)?
  func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode)
  func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode)
  func send(before limitDate: Date, components: NSMutableArray?, from receivePort: Port?, reserved: Int) -> Bool
  func send(before limitDate: Date, msgid: Int, components: NSMutableArray?, from receivePort: Port?, reserved: Int)
    -> Bool
  func invalidate()
  var isValid: Bool { get }
  var reservedSpaceLength: Int { get }
  static var didBecomeInvalidNotification: NSNotification.Name { get }
}

extension Port: PortLike {}

// MARK: Results: protocols for messages and queues
protocol MessageLike: AnyObject {
  func send(before date: Date) -> Bool
  var components: [AnyObject]? { get }
  var sendPort: Port? { get }
  var receivePort: Port? { get }
  var msgid: UInt32 { get set }
}

extension PortMessage: MessageLike {}

protocol QueueLike: AnyObject {
  func enqueue(_ notification: Notification, postingStyle: NotificationQueue.PostingStyle)
  func enqueue(
    _ notification: Notification, postingStyle: NotificationQueue.PostingStyle,
    coalesceMask: NotificationQueue.NotificationCoalescing, forModes modes: [RunLoop.Mode]?)
  func dequeueNotifications(
    matching notification: Notification, coalesceMask: NotificationQueue.NotificationCoalescing)
  static var `default`: NotificationQueue { get }
}

extension NotificationQueue: QueueLike {}

// MARK: Results: protocols for streams and file handles
protocol StreamScheduling {
  func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode)
  func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode)
}

extension Stream: StreamScheduling {}

protocol BackgroundReading {
  func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?)
  func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?)
  func acceptConnectionInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?)
  func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?)
}

extension FileHandle: BackgroundReading {}

// MARK: Results: a function that returns the call
func refresh(_ isLate: Bool, _ timer: Timer, _ port: Port) {
  guard isLate else { return RunLoop.main.perform(inModes: [.default, .common]) { print("refreshed") } }
  if !timer.isValid { return RunLoop.main.add(port, forMode: .default) }
  return RunLoop.main.add(timer, forMode: .common)
}

func repaint() { RunLoop.main.perform { print("painted") } }

// MARK: Results: references to the methods
func references(_ timer: Timer, _ port: Port) {
  let adds: (Timer, RunLoop.Mode) -> Void = RunLoop.main.add
  adds(timer, .default)
  let addsPort: (Port, RunLoop.Mode) -> Void = RunLoop.main.add(_:forMode:)
  addsPort(port, .common)
  let performs: (@escaping @Sendable () -> Void) -> Void = RunLoop.main.perform
  performs {}
  let performsInModes: ([RunLoop.Mode], @escaping @Sendable () -> Void) -> Void = RunLoop.main.perform
  performsInModes([.default]) {}
  let ends: [() -> Void] = [timer.fire, timer.invalidate, Thread.exit]
  let unbound: (RunLoop) -> (Timer, RunLoop.Mode) -> Void = RunLoop.add
  unbound(.main)(timer, .default)
  print(ends.count)
}

// MARK: Results: closures that pass the call on
func passOn(_ timer: Timer, _ other: Timer?, _ queue: DispatchQueue, _ lock: NSLock) {
  queue.sync { RunLoop.main.add(timer, forMode: .common) }
  queue.sync { RunLoop.main.perform {} }
  queue.async { RunLoop.main.perform(inModes: [.common]) {} }
  lock.withLock { RunLoop.main.add(timer, forMode: .default) }
  other.map { RunLoop.main.add($0, forMode: .default) }
  [timer].forEach { RunLoop.main.add($0, forMode: .common) }
  withExtendedLifetime(timer) { RunLoop.main.perform {} }
  let later = { RunLoop.main.perform {} }
  later()
  other == nil ? RunLoop.main.perform {} : RunLoop.main.add(timer, forMode: .default)
  let commands: [String: () -> Void] = ["tick": { RunLoop.main.perform {} }, "end": { print("end") }]
  commands["tick"]?()
}

// MARK: Results: tasks that pass the call on
func passOnInTasks(_ task: inout Task<Void, Never>?) async {
  await MainActor.run { RunLoop.main.perform {} }
  let posted = Task { RunLoop.main.perform {} }
  task = posted
  await Task { RunLoop.main.perform(inModes: [.default]) {} }.value
  await withTaskGroup(of: Void.self) { group in
    group.addTask { RunLoop.main.perform {} }
  }
  await withCheckedContinuation { continuation in RunLoop.main.perform { continuation.resume() } }
}

// MARK: Results: code after the thread's exit
func leaveWith(_ status: Int) -> Int {
  if status < 0 { Thread.exit() }
  switch status {
  case 0: Thread.exit()
  default: print(status)
  }
  Thread.exit()
  return status
}

// MARK: Results: items of Foundation's own in a loop
func addFoundations(_ timer: Foundation.Timer, _ port: SocketPort, _ queue: DispatchQueue) {
  let loop = RunLoop.main
  queue.sync { loop.add(port, forMode: .common) }
  [port].forEach { loop.add($0, forMode: .default) }
  let adds: (SocketPort, RunLoop.Mode) -> Void = loop.add
  adds(port, .default)
  return loop.add(timer, forMode: .common)
}
