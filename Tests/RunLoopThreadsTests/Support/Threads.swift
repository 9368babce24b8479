import Glibc
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

extension Thread {
  /// Makes a thread that runs a block, and starts it.
  static func started(_ block: @escaping @Sendable () -> Void) -> Thread {
    let thread = Thread(block: block)
    thread.start()
    return thread
  }

  /// Makes a thread that runs its loop in the default mode until somebody stops it, and starts it.
  static func running(name: String? = nil) -> Thread {
    let thread = Thread {
      RunLoop.current.add(Port(), forMode: .default)
      RunLoop.current.runUntilStopped()
    }
    thread.name = name
    thread.start()
    return thread
  }

  /// Ends a thread that runs its loop.
  func stopLoop() throws {
    try perform { RunLoop.current.stop() }
    try join()
  }

  /// Whether the thread waits for another.
  var isWaiting: Bool { waiting.current != nil }
}

/// Runs a block on a thread that is no `Thread`, and gives what it gives.
func onForeignThread<Value: Sendable>(_ block: @escaping @Sendable () -> Value) -> Value? {
  let body = ForeignBody(block)
  var thread = pthread_t()
  let answer = pthread_create(&thread, nil, ForeignBody.entry, Unmanaged.passRetained(body).toOpaque())
  guard answer == 0 else { return nil }
  pthread_join(thread, nil)
  return body.result.value as? Value
}

private final class ForeignBody: Sendable {
  let block: @Sendable () -> any Sendable
  let result = Box<(any Sendable)?>(nil)

  init(_ block: @escaping @Sendable () -> any Sendable) { self.block = block }

  static let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { pointer in
    guard let pointer else { return nil }
    let body = Unmanaged<ForeignBody>.fromOpaque(pointer).takeRetainedValue()
    body.result.value = body.block()
    return nil
  }
}

/// What the system says of this process and its threads.
enum System {
  /// The name that the kernel keeps for a thread of this process.
  static func name(ofThread id: Int32) -> String? {
    var text = contents(of: "/proc/self/task/\(id)/comm")
    if text?.last == "\n" { text?.removeLast() }
    return text
  }

  static var threadCount: Int { entries(of: "/proc/self/task") }
  static var descriptorCount: Int { entries(of: "/proc/self/fd") }

  private static func entries(of path: String) -> Int {
    guard let directory = opendir(path) else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count
  }

  private static func contents(of path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}

/// A small random generator with a seed, so that every run makes the same choices.
struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 to `bound` − 1.
  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}

extension ResidentThread {
  /// Waits until work has been posted that names a mode that nothing else does.
  func waitForWork(inMode mode: RunLoop.Mode) {
    waitUntil { runLoop.modes.contains(mode) }
    // The mode is made within the post: whoever is let in after it finds it done.
    _ = counts
  }
}

extension ResidentThread.StopReport {
  /// All pieces of work of which the report tells.
  var posted: Int { ran + cancelled + dropped + refused }
}
