// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import Glibc
import RunLoopCore

/// Drives all exchanges of a client on one loop: libcurl's sockets are its sources, libcurl's timer is its timer.
///
/// All of it belongs to the loop's thread.
final class Loader: @unchecked Sendable {
  // Sendable: what changes is used by the loop's thread alone.

  let loop: RunLoop
  private var multi: OpaquePointer?
  private let connectionsPerHost: Int
  private var attempts: [OpaquePointer: Attempt] = [:]
  /// Transfers of the library's that have ended and can be used again.
  private var spare: [OpaquePointer] = []
  private static let mostSpare = 32
  var watches: [Int32: SocketWatch] = [:]
  /// The sockets of connections on which a request was sent.
  var connections: [SocketWatch.Ends: SocketWatch] = [:]
  /// How deep we are in the library, which must not be called while it calls us.
  private var depth = 0
  private var deferred: [() -> Void] = []
  private var isOpen = true

  // The one timer: for the library, and for the deadlines of transfers.
  private var timer: Timer?
  private var libraryDue = Tick.never
  private var sweepDue = Tick.never
  private var armed = Tick.never

  /// The transfers that have not ended.
  var transfers: () -> [Transfer] = { [] }

  init(loop: RunLoop, connectionsPerHost: Int) {
    self.loop = loop
    self.connectionsPerHost = max(1, min(connectionsPerHost, 10_000))
    // It repeats so that it stays when it has fired; its interval does not matter.
    let timer = Timer(deadline: Tick.never.instant, interval: .seconds(1 << 30)) { [weak self] _ in self?.timerFired() }
    self.timer = timer
    loop.add(timer, forMode: .common)
  }

  /// Opens the library and begins to use it, unless it is in use.
  func open() throws(HTTP.Error) {
    guard isOpen else { throw HTTP.Error(.stopped, "the client has stopped") }
    guard multi == nil else { return }
    try CurlLibrary.open()
    guard Self.hasMemory, let multi = clc_multi_make() else {
      throw HTTP.Error(.noLibrary, "libcurl has too little memory to start")
    }
    self.multi = multi
    _ = clc_multi_set_long(multi, Int32(clc_multi_option_most_of_a_host), connectionsPerHost)
    _ = clc_multi_set_long(multi, Int32(clc_multi_option_most_connections), max(64, 4 * connectionsPerHost))
    // As many as the server takes.
    _ = clc_multi_set_long(multi, Int32(clc_multi_option_most_streams), 1000)
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = clc_multi_set_socket_function(multi, loaderSocketFunction, context)
    _ = clc_multi_set_timer_function(multi, loaderTimerFunction, context)
  }

  /// Ends every connection and gives everything back.
  func close() {
    guard isOpen else { return }
    isOpen = false
    for attempt in Array(attempts.values) { remove(attempt, keepsEasy: false) }
    if let multi { inside { _ = clc_multi_free(multi) } }
    multi = nil
    for easy in spare { clc_easy_free(easy) }
    spare = []
    for watch in watches.values { watch.source.invalidate() }
    watches = [:]
    connections = [:]
    timer?.invalidate()
    timer = nil
  }

  deinit {
    if isOpen { fatalError("a loader of HTTP goes without being closed") }
  }

  // Deadlines.

  /// Takes a transfer's next deadline into account.
  func note(deadline: Tick) {
    guard deadline < sweepDue else { return }
    sweepDue = deadline
    arm()
  }

  private func sweep(_ now: Tick) {
    sweepDue = .never
    for transfer in transfers() where transfer.deadline <= now { transfer.timeHasCome(now) }
    for transfer in transfers() { sweepDue = min(sweepDue, transfer.deadline) }
    // Deadlines that lie close together are looked at together.
    if sweepDue != .never { sweepDue = max(sweepDue, now + 1_000_000) }
  }

  // Attempts.

  /// A transfer of the library's, to be set up; nil if there is no memory.
  func takeEasy() -> OpaquePointer? { spare.popLast() ?? (Self.hasMemory ? clc_easy_make() : nil) }

  /// Whether the library finds memory, as far as a test has planned that.
  private static var hasMemory: Bool { (try? SystemCall.memoryAllocate.make { 0 }) != nil }

  func start(_ attempt: Attempt) {
    attempts[attempt.easy] = attempt
    var code: Int32 = 0
    inside { code = clc_multi_add(multi, attempt.easy) }
    guard code == 0 else {
      attempts[attempt.easy] = nil
      let error = HTTP.Error(.cannotConnect, "libcurl takes no more: \(String(cString: clc_multi_text(code)))")
      return later {
        clc_easy_free(attempt.easy)
        attempt.release()
        attempt.transfer.hasEnded(attempt, error, timings: .init())
      }
    }
    later { [self] in
      if libraryDue <= loop.clockNow { act(Int32(clc_socket_timeout), 0) }
    }
  }

  /// Gives an attempt up; its transfer hears nothing more of it.
  func drop(_ attempt: Attempt) {
    attempt.fail(HTTP.Error(.cancelled, "the attempt was given up"))
    later { [self] in remove(attempt, keepsEasy: false) }
  }

  /// Ends an attempt with an error of ours.
  func end(_ attempt: Attempt, _ error: HTTP.Error) {
    guard attempts[attempt.easy] === attempt else { return }
    remove(attempt, keepsEasy: false)
    attempt.transfer.hasEnded(attempt, error, timings: .init())
  }

  /// A socket of an attempt cannot be watched: it would never go on.
  func fail(_ easy: OpaquePointer, _ error: RunLoopError) {
    guard let attempt = attempts[easy] else { return }
    deferred.append { [self] in end(attempt, HTTP.Error(.cannotConnect, "\(error)")) }
  }

  private func remove(_ attempt: Attempt, keepsEasy: Bool) {
    guard attempts[attempt.easy] === attempt else { return }
    attempts[attempt.easy] = nil
    inside { _ = clc_multi_remove(multi, attempt.easy) }
    if keepsEasy, spare.count < Self.mostSpare {
      clc_easy_reset(attempt.easy)
      spare.append(attempt.easy)
    } else {
      clc_easy_free(attempt.easy)
    }
    attempt.release()
  }

  // Multiplexing.

  /// Whether the servers speak HTTP/2, by their origins; false too for those that could not be reached last.
  private var multiplexing: [String: Bool] = [:]

  /// Whether an origin's connection takes further requests; nil if that is not known yet.
  func multiplexes(_ origin: String) -> Bool? { multiplexing[origin] }

  /// Notes what an origin's last connection was.
  ///
  /// The library tries the next of those that wait for a connection when the one before has failed. A host that does not
  /// answer would have them time out one after the other: they are started over, and wait for no other.
  func note(_ origin: String, multiplexes: Bool) {
    guard multiplexing[origin] != multiplexes else { return }
    if multiplexing.count >= 1024 { multiplexing = [:] }
    multiplexing[origin] = multiplexes
    guard !multiplexes else { return }
    let waiting = attempts.values.filter { $0.waitsForMultiplexing && $0.exchange.address.origin == origin }
    guard !waiting.isEmpty else { return }
    later { [self] in
      for attempt in waiting.sorted(by: { $0.number < $1.number })
      where attempt.waitsForMultiplexing && attempts[attempt.easy] === attempt { startOver(attempt) }
    }
  }

  /// Takes an attempt that has not begun out of the library's queue, and puts it there again to wait for no other.
  private func startOver(_ attempt: Attempt) {
    attempt.waitsForMultiplexing = false
    var code: Int32 = 0
    inside {
      _ = clc_multi_remove(multi, attempt.easy)
      _ = clc_set_long(attempt.easy, Int32(clc_option_wait_for_multiplexing), 0)
      code = clc_multi_add(multi, attempt.easy)
    }
    guard code != 0 else { return }
    end(attempt, HTTP.Error(.cannotConnect, "libcurl takes no more: \(String(cString: clc_multi_text(code)))"))
  }

  // Yielding. The library reads as long as there is something to read, and would let nobody else come.

  /// How many bytes are taken before everybody else comes.
  static let mostInCall = 512 * 1024
  private var takenInCall = 0
  private var yielded: [Attempt] = []
  /// Whether there is work to be taken, and what asks for coming back.
  var isWanted: () -> Bool = { false }
  var comeBack: () -> Void = {}

  /// Whether an attempt is to wait with bytes until everybody else has come.
  func yields(_ attempt: Attempt, _ count: Int) -> Bool {
    guard takenInCall > 0, takenInCall >= Self.mostInCall || isWanted() else {
      takenInCall += count
      return false
    }
    if yielded.isEmpty { comeBack() }
    yielded.append(attempt)
    return true
  }

  /// Everybody else has come.
  func goOnWithYielded() {
    let attempts = yielded
    yielded = []
    for attempt in attempts where self.attempts[attempt.easy] === attempt { attempt.resumeReceiving() }
    settle()
  }

  // The library.

  /// Calls the library, which may call back.
  func inside(_ body: () -> Void) {
    if depth == 0 { takenInCall = 0 }
    depth += 1
    body()
    depth -= 1
  }

  var isInside: Bool { depth > 0 }

  /// Does something as soon as we are not in the library: at once, or when we have left it.
  func later(_ body: @escaping () -> Void) {
    deferred.append(body)
    settle()
  }

  func act(_ descriptor: Int32, _ events: Int32) {
    guard isOpen, depth == 0 else { return }
    if descriptor == Int32(clc_socket_timeout) { libraryDue = .never }
    inside { _ = clc_multi_act(multi, descriptor, events) }
    settle()
  }

  private var isSettling = false

  /// Takes what has ended, and does what was deferred.
  func settle() {
    guard depth == 0, !isSettling else { return }
    isSettling = true
    defer { isSettling = false }
    while isOpen {
      var code: Int32 = 0
      if let multi, let easy = clc_multi_next_ended(multi, &code) {
        guard let attempt = attempts[easy] else { continue }
        let (error, timings) = (attempt.outcome(code), attempt.timings)
        remove(attempt, keepsEasy: true)
        if error != nil, attempt.requests == 0, attempt.exchange.address.isTLS {
          note(attempt.exchange.address.origin, multiplexes: false)
        }
        attempt.transfer.hasEnded(attempt, error, timings: timings)
      } else if !deferred.isEmpty {
        let bodies = deferred
        deferred = []
        // `act` settles only when nobody else does: here the loop goes on.
        for body in bodies { body() }
      } else {
        break
      }
    }
    if !isOpen { deferred = [] }
    arm()
  }

  // The timer.

  func libraryWants(_ milliseconds: Int) {
    libraryDue = milliseconds < 0 ? .never : loop.clockNow + Int64(milliseconds) &* 1_000_000
    if depth == 0 { arm() }
  }

  private func arm() {
    let next = min(libraryDue, sweepDue)
    guard next != armed, let timer else { return }
    armed = next
    if next == .never { timer.park() } else { timer.deadline = next.instant }
  }

  private func timerFired() {
    guard isOpen else { return }
    armed = .distantPast
    let now = loop.clockNow
    if libraryDue <= now { act(Int32(clc_socket_timeout), 0) }
    if isOpen, sweepDue <= now { sweep(now) }
    if isOpen { settle() }
    arm()
  }
}
