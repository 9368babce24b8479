// SPDX-License-Identifier: Apache-2.0

// Short programs that each show a defect of Foundation on Linux. This file is compiled twice: with Foundation alone,
// and (through the link in `DefectsBeside`) with one additional line that imports RunLoopKit.
import Foundation

#if BESIDE
  import RunLoopKit
#endif

/// A program's observation, and whether it matches Foundation's documentation.
public typealias Observation = (seen: String, isRight: Bool)

/// The programs in the order of the table.
public let programs: [(title: String, run: @Sendable () -> Observation)] = [
  ("a timer fires after its interval, not at once", firstFire),
  ("a repeating timer without an interval repeats", zeroInterval),
  ("an invalid timer lets its block go", blockOfTimer),
  ("a timer's tolerance reads back", tolerance),
  ("queued notifications are posted first come, first served", orderOfQueue),
  ("as soon as possible comes before when idle", styles),
  ("a notification can be queued while one is posted", reentry),
  ("a notification for a mode is posted when that mode runs", customMode),
  ("a thread has the name that it was given", nameOfThread),
  ("a thread's end is announced", endOfThread),
  ("a thread that leaves by exit() is released", objectOfThread),
  ("a port keeps a loop alive", portInLoop),
  ("a file handle notifies the thread that asked", handleOfThread),
  ("an accepted connection is in its notification", connectionOfHandle),
  ("a stream tells its delegate what it can do", delegateOfStream),
]

/// A value that closures share; each program ends its use on one thread before another begins.
final class Shared<Value>: @unchecked Sendable {
  var value: Value
  init(_ value: Value) { self.value = value }
}

extension RunLoop.Mode {
  fileprivate static let mine = RunLoop.Mode("mine")
}

// MARK: Timers

@Sendable private func firstFire() -> Observation {
  let interval = 0.2
  let start = DispatchTime.now()
  let elapsed = Shared<Double?>(nil)
  let timer = Timer(timeInterval: interval, repeats: false) { _ in
    elapsed.value = Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
  }
  RunLoop.current.add(timer, forMode: .default)
  RunLoop.current.run(until: Date(timeIntervalSinceNow: 1))
  guard let elapsed = elapsed.value else { return ("it does not fire", false) }
  return (String(format: "fires after %.1f of %.1f s", elapsed, interval), elapsed >= interval)
}

@Sendable private func zeroInterval() -> Observation {
  let count = Shared(0)
  let timer = Timer(timeInterval: 0, repeats: true) { timer in
    count.value += 1
    if count.value == 3 { timer.invalidate() }
  }
  RunLoop.current.add(timer, forMode: .default)
  RunLoop.current.run(until: Date(timeIntervalSinceNow: 1))
  return ("fires \(count.value) of 3 times", count.value == 3)
}

@Sendable private func blockOfTimer() -> Observation {
  weak var captured: Shared<Int>?
  do {
    let object = Shared(0)
    captured = object
    let timer = Timer(timeInterval: 60, repeats: true) { _ in object.value += 1 }
    RunLoop.current.add(timer, forMode: .default)
    timer.invalidate()
  }
  RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.01))
  return (captured == nil ? "the block is released" : "the block is never released", captured == nil)
}

@Sendable private func tolerance() -> Observation {
  let timer = Timer(timeInterval: 60, repeats: true) { _ in }
  timer.tolerance = 5
  return ("set 5.0, read \(timer.tolerance)", timer.tolerance == 5)
}

// MARK: Notification queues

/// Records the names of posted notifications.
private final class Log: @unchecked Sendable {
  private(set) var names: [String] = []
  private var observers: [any NSObjectProtocol] = []

  init(_ names: String..., also: @escaping @Sendable (String) -> Void = { _ in }) {
    observers = names.map { name in
      let posted = Notification.Name(name)
      return NotificationCenter.default.addObserver(forName: posted, object: nil, queue: nil) { [unowned self] _ in
        self.names.append(name)
        also(name)
      }
    }
  }

  var text: String { names.isEmpty ? "nothing is posted" : "posts " + names.joined(separator: ", ") }
}

private func enqueue(
  _ name: String, _ style: NotificationQueue.PostingStyle = .asap, forModes modes: [RunLoop.Mode]? = nil
) {
  NotificationQueue.default.enqueue(
    Notification(name: Notification.Name(name)), postingStyle: style, coalesceMask: [], forModes: modes)
}

/// Runs the loop in a mode for some passes, kept alive by a timer.
private func runLoop(_ mode: RunLoop.Mode = .default) {
  let count = Shared(0)
  let timer = Timer(fire: Date(timeIntervalSinceNow: 0.01), interval: 0.01, repeats: true) { _ in count.value += 1 }
  RunLoop.current.add(timer, forMode: mode)
  let limit = Date(timeIntervalSinceNow: 5)
  while count.value < 3, Date() < limit {
    _ = RunLoop.current.run(mode: mode, before: Date(timeIntervalSinceNow: 0.02))
  }
  timer.invalidate()
}

@Sendable private func orderOfQueue() -> Observation {
  let log = Log("one", "two", "three")
  for name in ["one", "two", "three"] { enqueue(name) }
  runLoop()
  return (log.text, log.names == ["one", "two", "three"])
}

@Sendable private func styles() -> Observation {
  let log = Log("idle", "soon")
  // The loop is not idle: a block is pending.
  enqueue("idle", .whenIdle)
  enqueue("soon", .asap)
  runLoop()
  return (log.text, log.names == ["soon", "idle"])
}

@Sendable private func reentry() -> Observation {
  let log = Log("one", "two") { name in if name == "one" { enqueue("two") } }
  enqueue("one")
  runLoop()
  return (log.text, log.names == ["one", "two"])
}

@Sendable private func customMode() -> Observation {
  let log = Log("one")
  enqueue("one", forModes: [.mine])
  runLoop(.mine)
  return (log.text, log.names == ["one"])
}

// MARK: Threads

/// Runs a block on a new thread, and waits until the block calls its argument, as the thread's end may go unreported.
private func onThread(named name: String? = nil, _ body: @escaping @Sendable () -> Void) {
  let done = DispatchSemaphore(value: 0)
  let thread = Thread {
    body()
    done.signal()
  }
  thread.name = name
  thread.start()
  done.wait()
}

@Sendable private func nameOfThread() -> Observation {
  let name = Shared<String?>(nil)
  onThread(named: "network") { name.value = Thread.current.name }
  return ("set \"network\", read \"\(name.value ?? "")\"", name.value == "network")
}

@Sendable private func endOfThread() -> Observation {
  let announced = DispatchSemaphore(value: 0)
  let observer = NotificationCenter.default.addObserver(forName: .NSThreadWillExit, object: nil, queue: nil) { _ in
    announced.signal()
  }
  defer { NotificationCenter.default.removeObserver(observer) }
  onThread {}
  let isRight = announced.wait(timeout: .now() + 2) == .success
  return (isRight ? "NSThreadWillExit is posted" : "NSThreadWillExit is not posted in 2 s", isRight)
}

@Sendable private func objectOfThread() -> Observation {
  final class Token: Sendable {
    let released: DispatchSemaphore
    init(_ released: DispatchSemaphore) { self.released = released }
    deinit { released.signal() }
  }
  let released = DispatchSemaphore(value: 0)
  do {
    let token = Token(released)
    let thread = Thread {
      // exit() leaks this frame's references, so it has none: the token belongs to the thread's block.
      useToken(token)
      Thread.exit()
    }
    thread.start()
  }
  let isRight = released.wait(timeout: .now() + 2) == .success
  return (isRight ? "its block is released" : "its block is not released in 2 s", isRight)
}

@inline(never) private func useToken(_ token: AnyObject) { withExtendedLifetime(token) {} }

// MARK: Ports

@Sendable private func portInLoop() -> Observation {
  let start = DispatchTime.now()
  RunLoop.current.add(Port(), forMode: .mine)
  let didRun = RunLoop.current.run(mode: .mine, before: Date(timeIntervalSinceNow: 0.2))
  let elapsed = Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
  return (String(format: "a run of 0.2 s takes %.1f s", elapsed), didRun && elapsed >= 0.2)
}

// MARK: Files and streams

@Sendable private func handleOfThread() -> Observation {
  let pipe = Pipe()
  let place = Shared("nowhere")
  let observer = NotificationCenter.default.addObserver(
    forName: FileHandle.readCompletionNotification, object: pipe.fileHandleForReading, queue: nil
  ) { _ in place.value = Thread.isMainThread ? "the main thread" : "the thread that asked" }
  defer { NotificationCenter.default.removeObserver(observer) }
  Thread.detachNewThread {
    pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: [.default])
    pipe.fileHandleForWriting.write(Data("hello".utf8))
    runLoop()
  }
  // The main thread's loop runs too, in case it performs either.
  let limit = Date(timeIntervalSinceNow: 5)
  while place.value == "nowhere", Date() < limit { runLoop() }
  return ("notifies \(place.value)", place.value == "the thread that asked")
}

@Sendable private func connectionOfHandle() -> Observation {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  // A socket address that begins with a zero byte is not a file.
  withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: "defects-\(getpid())".utf8) }
  func withAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Bool {
    withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 }
    }
  }
  let listener = FileHandle(fileDescriptor: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), closeOnDealloc: true)
  let client = FileHandle(fileDescriptor: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), closeOnDealloc: true)
  guard withAddress({ bind(listener.fileDescriptor, $0, $1) }), listen(listener.fileDescriptor, 1) == 0 else {
    return ("cannot listen", false)
  }
  let seen = Shared<String?>(nil)
  let observer = NotificationCenter.default.addObserver(
    forName: .NSFileHandleConnectionAccepted, object: listener, queue: nil
  ) { notification in
    let connection = notification.userInfo?[NSFileHandleNotificationFileHandleItem] as? FileHandle
    seen.value = connection.map { String(decoding: $0.availableData, as: UTF8.self) } ?? "no connection"
  }
  defer { NotificationCenter.default.removeObserver(observer) }
  listener.acceptConnectionInBackgroundAndNotify(forModes: [.default])
  guard withAddress({ connect(client.fileDescriptor, $0, $1) }) else { return ("cannot connect", false) }
  client.write(Data("a greeting".utf8))
  let limit = Date(timeIntervalSinceNow: 5)
  while seen.value == nil, Date() < limit { runLoop() }
  return ("brings \(seen.value ?? "nothing at all")", seen.value == "a greeting")
}

private final class Reader: StreamDelegate {
  private(set) var text = ""

  func stream(_ stream: Stream, handle event: Stream.Event) {
    guard event == .hasBytesAvailable, let stream = stream as? InputStream else { return }
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = stream.read(&bytes, maxLength: bytes.count)
    text += String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}

@Sendable private func delegateOfStream() -> Observation {
  let stream = InputStream(data: Data("hello".utf8))
  let reader = Reader()
  stream.delegate = reader
  stream.schedule(in: RunLoop.current, forMode: .default)
  stream.open()
  runLoop()
  return (reader.text.isEmpty ? "is silent" : "makes it read \(reader.text)", reader.text == "hello")
}
