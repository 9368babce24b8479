// SPDX-License-Identifier: Apache-2.0

// Idioms of programs that use run loops and timers. The sections are compiled with Foundation alone and together with
// RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Idioms: a stream's subclass
// Porting: `override func schedule(in:forMode:)` in a stream's subclass
final class TextStream: InputStream {
  private var text = Data("text".utf8)
  override var hasBytesAvailable: Bool { !text.isEmpty }
  override func open() {}
  override func close() {}
  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
}

// MARK: Idioms: a timer's double for tests
// Porting: `class Alarm: Timer`
class CountingTimer: Timer {
  var count = 0
  override func fire() { count += 1 }
  override func invalidate() { count = 0 }
}

// MARK: Idioms: generic code over objects
// Porting: `T: NSObject` for loops, timers, threads and ports
struct Extended<Base: NSObject> { let base: Base }

extension NSObjectProtocol where Self: NSObject {
  var extended: Extended<Self> { Extended(base: self) }
}

func extend(_ timer: Timer) -> Extended<Timer> { Extended(base: timer) }
func extendLoop() -> Extended<RunLoop> { RunLoop.main.extended }

// MARK: Idioms: generic code over objects, as it compiles with both
struct Boxed<Base: AnyObject> { let base: Base }

func box(_ timer: Timer) -> (Boxed<Timer>, Boxed<RunLoop>, Boxed<Thread>) {
  (Boxed(base: timer), Boxed(base: .main), Boxed(base: .current))
}

// MARK: Idioms: collections of objects
// Porting: `T: NSObject` for loops, timers, threads and ports
func objectCollections(_ timer: Timer) -> Int {
  let keys: Set<AnyHashable> = [Thread.current, timer, RunLoop.main]
  let objects: [NSObject] = [Thread.current, timer]
  return keys.count + objects.count
}

// MARK: Idioms: collections of objects, as they compile with both
func anyCollections(_ timer: Timer) -> Int {
  let keys: Set<AnyHashable> = [Thread.current, timer, RunLoop.main]
  let objects: [AnyObject] = [Thread.current, timer, RunLoop.current]
  let table = NSMutableDictionary()
  table["timer"] = timer
  let numbers = [timer: 1]
  let names = [ObjectIdentifier(timer): "timer"]
  return keys.count + objects.count + table.count + numbers.count + names.count
}

// MARK: Idioms: helpers that take any closure
extension Timer {
  static func every(_ seconds: TimeInterval, _ body: @escaping () -> Void) -> Timer {
    let timer = Timer(timeInterval: seconds, repeats: true) { _ in body() }
    RunLoop.main.add(timer, forMode: .common)
    return timer
  }

  class func once(_ seconds: TimeInterval, block: @escaping (Timer) -> Void) -> Timer {
    Timer(timeInterval: seconds, repeats: false, block: block)
  }
}

extension RunLoop {
  func go(_ body: @escaping () -> Void) { perform(body) }
}

// MARK: Idioms: a type of the main actor with a timer
@MainActor final class Stopwatch {
  private var seconds = 0
  private var timer: Timer?

  func start() {
    timer = Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { [weak self] _ in
      MainActor.assumeIsolated { self?.seconds += 1 }
    }
  }

  func stop() {
    timer?.invalidate()
    timer = nil
  }
}

// MARK: Idioms: modes stored and passed
struct LoopSettings {
  var mode: RunLoop.Mode = .default
  var modes: [RunLoop.Mode] = [.default, .common]
}

extension RunLoop.Mode {
  static let network = RunLoop.Mode("network")
  static let drawing = RunLoop.Mode(rawValue: "drawing")
}

func schedule(_ input: InputStream, _ settings: LoopSettings) {
  input.schedule(in: RunLoop.current, forMode: settings.mode)
}

// MARK: Idioms: defaults and members by inference
func pump(_ loop: RunLoop = .current, until date: Date) { loop.run(until: date) }

func pumpAll() {
  pump(until: Date())
  pump(.main, until: .distantPast)
  let loop: RunLoop = .main
  print(loop.limitDate(forMode: .default) ?? .distantFuture)
}

// MARK: Idioms: weak references and identity
final class Keeper {
  weak var timer: Timer?
  weak var loop: RunLoop?
  unowned let thread: Thread

  init(_ thread: Thread) { self.thread = thread }

  func isHere() -> Bool { loop === RunLoop.current && thread == .current && thread.isEqual(Thread.mainThread) }
}

// MARK: Idioms: casts from what could be anything
func stop(_ value: Any, _ notification: Notification) {
  if let timer = value as? Timer { timer.invalidate() }
  if let info = (value as? Timer)?.userInfo as? [String: Any] { print(info) }
  if let thread = notification.object as? Thread { print(thread.name ?? "") }
  switch value {
  case is RunLoop, is Port: print("a loop or a port")
  default: break
  }
}

// MARK: Idioms: in asynchronous functions
func hop() async -> Bool {
  RunLoop.main.perform {}
  return Thread.isMainThread
}

// MARK: Idioms: the main queue and the main operation queue
func runMain() {
  DispatchQueue.main.async {}
  OperationQueue.main.addOperation {}
  RunLoop.main.add(Timer(timeInterval: 1, repeats: false) { _ in }, forMode: .common)
  RunLoop.main.run()
}

// MARK: Idioms: other names, and a protocol of one's own
typealias Loop = RunLoop
typealias LoopModes = [RunLoop.Mode]

protocol Scheduler {
  associatedtype Options
  static var shared: Self { get }
}

extension RunLoop: Scheduler {
  typealias Options = Never
  static var shared: Self { unsafeDowncast(RunLoop.main, to: Self.self) }
}

// MARK: Idioms: extensions with members of the names that ours has beside Foundation's
extension RunLoop {
  final class Condition { var ports: [Port] = [] }

  func run(mode: RunLoop.Mode = .default, until condition: Condition) {
    while condition.ports.isEmpty { _ = run(mode: mode, before: Date(timeIntervalSinceNow: 1)) }
  }

  func stop() {}
  func wait(_ seconds: TimeInterval) { run(until: Date(timeIntervalSinceNow: seconds)) }
  func schedule(after seconds: TimeInterval, _ body: @escaping @Sendable () -> Void) {
    add(Timer(timeInterval: seconds, repeats: false) { _ in body() }, forMode: .default)
  }
  static func advance(by seconds: TimeInterval = 0.01) { main.run(until: Date().addingTimeInterval(seconds)) }
}

extension Timer {
  func pause() { fireDate = .distantFuture }
  func resume() { fireDate = Date() }
  convenience init(every seconds: TimeInterval, _ body: @escaping @Sendable () -> Void) {
    self.init(timeInterval: seconds, repeats: true) { _ in body() }
  }
}

func useExtensions() {
  RunLoop.current.stop()
  RunLoop.current.wait(1)
  RunLoop.current.schedule(after: 1) {}
  RunLoop.advance()
  Timer(every: 1) {}.pause()
}

// MARK: Idioms: waiting for a condition
@discardableResult func eventually(_ seconds: TimeInterval = 5, _ condition: () -> Bool) -> Bool {
  let end = Date() + seconds
  while !condition() && Date() < end { _ = RunLoop.current.run(mode: .default, before: Date() + 0.01) }
  return condition()
}

// MARK: Idioms: constants of these types
let sharedLoop = RunLoop.main

final class Shared {
  static let thread = Thread {}
  static let queue = NotificationQueue.default
  static let mode = RunLoop.Mode("shared")
}

// MARK: Idioms: captured by tasks and queues
func capture() {
  let timer = Timer(timeInterval: 1, repeats: false) { _ in }
  let loop = RunLoop.current
  Task { loop.add(timer, forMode: .common) }
  DispatchQueue.main.async { timer.invalidate() }
}

// MARK: Idioms: the delegate of ports, and messages between threads
final class Letterbox: NSObject, PortDelegate {
  func handle(_ message: PortMessage) { print(message.msgid) }
}

func exchange(_ letterbox: Letterbox) -> Bool {
  let port = Port()
  port.setDelegate(letterbox)
  RunLoop.current.add(port, forMode: .default)
  let message = PortMessage(sendPort: port, receivePort: nil, components: nil)
  message.msgid = 4
  return message.send(before: Date()) && port.send(before: Date(), components: nil, from: nil, reserved: 0)
}

// MARK: Idioms: what keeps a loop alive
func keepRunning() {
  RunLoop.current.add(Port(), forMode: .default)
  RunLoop.current.add(SocketPort(), forMode: .default)
  RunLoop.current.remove(Port(), forMode: .default)
}
