import Dispatch
import Glibc
import Synchronization
import Testing

@testable import RunLoopCore

/// Two connected descriptors, closed when they go.
///
/// Neither blocks, so that a handler that is called for nothing does not hang its test.
final class Pipe: Sendable {
  enum Kind: Sendable {
    /// What is written to one end is read from the other.
    case oneWay
    /// Both ends are read and written.
    case socket
  }

  let reading: Int32
  let writing: Int32
  private let isReadingOpen = Atomic<Bool>(true)
  private let isWritingOpen = Atomic<Bool>(true)

  init(_ kind: Kind = .oneWay) throws {
    var ends: [Int32] = [0, 0]
    let answer =
      switch kind {
      case .oneWay: pipe(&ends)
      case .socket: socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
      }
    try #require(answer == 0)
    for end in ends {
      try #require(fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) == 0)
      try #require(fcntl(end, F_SETFD, FD_CLOEXEC) == 0)
    }
    reading = ends[0]
    writing = ends[1]
  }

  deinit {
    closeReading()
    closeWriting()
  }

  func closeReading() { if isReadingOpen.exchange(false, ordering: .relaxed) { close(reading) } }

  func closeWriting() { if isWritingOpen.exchange(false, ordering: .relaxed) { close(writing) } }

  /// Waits until the kernel knows that one end is closed.
  ///
  /// A process that another test is starting at this moment has a copy of it, until it runs its own program.
  func awaitEnd() {
    let open = isReadingOpen.load(ordering: .relaxed) ? reading : writing
    while true {
      var entry = pollfd(fd: open, events: 0, revents: 0)
      if poll(&entry, 1, 0) > 0, Int32(entry.revents) & (POLLERR | POLLHUP) != 0 { return }
      sched_yield()
    }
  }

  /// Makes a second descriptor of what is read, with a number that nothing else has had or will have.
  func duplicateReading() throws -> Int32 {
    let lowest = Pipe.lastDuplicate.wrappingAdd(1, ordering: .relaxed).newValue
    let number = fcntl(reading, F_DUPFD_CLOEXEC, lowest)
    try #require(number == lowest)
    return number
  }

  private static let lastDuplicate = Atomic<Int32>(600)

  func write(_ bytes: [UInt8] = [7]) {
    if Glibc.write(writing, bytes, bytes.count) != bytes.count { Issue.record("nothing was written") }
  }

  /// Reads at most so many bytes that are there.
  @discardableResult
  func read(_ count: Int = 1) -> [UInt8] { readBytes(reading, count) }
}

/// Reads at most so many bytes that are there.
@discardableResult
func readBytes(_ descriptor: Int32, _ count: Int = 1) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: count)
  let answer = read(descriptor, &bytes, count)
  return Array(bytes.prefix(max(0, answer)))
}

/// What a loop's method that can fail says is the matter; nil: nothing.
func failure(of body: () throws(RunLoopError) -> Void) -> RunLoopError? {
  do throws(RunLoopError) {
    try body()
    return nil
  } catch {
    return error
  }
}

extension RunLoop {
  /// Adds a source that waits for a descriptor.
  @discardableResult
  func watch(
    _ descriptor: Int32, _ events: DescriptorSource.Events = .readable, mode: Mode = .default,
    _ handler: @escaping @Sendable (DescriptorSource, DescriptorSource.Events) -> Void = { _, _ in }
  ) -> DescriptorSource {
    let source = DescriptorSource(descriptor: descriptor, events: events, handler: handler)
    do { try add(source, forMode: mode) } catch { Issue.record("\(error)") }
    return source
  }

  /// The epoll set of a mode.
  func pollSet(_ mode: Mode = .default) -> PollSet? { table.withLock { $0.modes[mode]?.pollSet } }

  /// Waits until this loop, which another thread runs, has announced to sleep in this way.
  func awaitSleep(_ sleeper: WakeState.Sleeper) {
    while word.state.sleeper != sleeper { sched_yield() }
  }
}

/// A loop on the system's clock that a thread of its own runs until it is stopped or finished.
final class RunningLoop: Sendable {
  let loop: RunLoop
  let log = Log()
  private let thread: StartedThread<Void>

  /// Starts the thread, which sets its loop up and runs it.
  init(_ setUp: @escaping @Sendable (RunLoop, Log) -> Void) {
    let made = Later<RunLoop>()
    let isMade = DispatchSemaphore(value: 0)
    let log = log
    thread = startThread {
      let loop = RunLoop.current
      setUp(loop, log)
      made.value = loop
      isMade.signal()
      log.write("\(loop.runUntilStopped())")
    }
    isMade.wait()
    guard let loop = made.value else { preconditionFailure("the thread has no loop") }
    self.loop = loop
  }

  /// What was logged until the run has ended.
  func result() -> String {
    thread.result()
    return log.text
  }
}
