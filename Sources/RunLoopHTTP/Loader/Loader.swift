// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore

/// Runs all exchanges of a client on one loop, which watches libcurl's sockets and provides its timer.
final class Loader: @unchecked Sendable {
  // Sendable: mutable state is used only by the loop's thread. No variable is mutated across a call to other code, so
  // those used by every request skip the exclusivity check.

  let loop: RunLoop
  @exclusivity(unchecked) private(set) var multi: OpaquePointer?
  private let connectionsPerHost: Int
  /// The attempts that have been added to libcurl, each of which knows its index.
  @exclusivity(unchecked) private(set) var attempts: [Attempt] = []
  @exclusivity(unchecked) private(set) var spare = SpareHandles()
  @exclusivity(unchecked) var watches = WatchTable()
  /// The sockets of connections on which a request was sent.
  var connections: [SocketWatch.Ends: SocketWatch] = [:]
  /// The sockets of the most recent connections, indexed by the low bits of their local ports.
  @exclusivity(unchecked) var lately: [SocketWatch?] = Array(repeating: nil, count: lateSize)
  static let lateSize = 256
  /// The sockets whose written bytes the kernel holds back until libcurl returns.
  @exclusivity(unchecked) var holdingBack: [SocketWatch] = []
  /// The guard for plaintext HTTP/2 connections, created with the first one.
  var floodGuard: FloodGuard?
  /// The depth of calls into libcurl, which must not be called from its own callbacks.
  @exclusivity(unchecked) private var depth = 0
  @exclusivity(unchecked) private var deferred: [Deferred] = []
  /// The storage of the last batch, kept empty so that its capacity can be reused.
  @exclusivity(unchecked) private var emptied: [Deferred] = []
  /// The maximum capacity of such storage.
  static let mostRoom = 1024
  @exclusivity(unchecked) var isOpen = true

  /// An action that is performed after libcurl has returned.
  private enum Deferred {
    case attempt(Transfer)
    case call(() -> Void)
  }

  // The timer serves both libcurl and the deadlines of transfers.
  private var timer: Timer?
  @exclusivity(unchecked) private var libraryDue = Tick.never
  @exclusivity(unchecked) private var sweepDue = Tick.never
  @exclusivity(unchecked) private var armed = Tick.never
  /// When to check connections that may be HTTP/2; see `Loader+Looking.swift`.
  @exclusivity(unchecked) var lookDue = Tick.never
  /// The connection for which libcurl was just called without new data.
  @exclusivity(unchecked) var lookedAt: SocketWatch?
  @exclusivity(unchecked) var hasHTTP2 = false

  /// Returns the transfers that have not ended.
  @exclusivity(unchecked) var transfers: () -> [Transfer] = { [] }

  init(loop: RunLoop, connectionsPerHost: Int) {
    self.loop = loop
    self.connectionsPerHost = max(1, min(connectionsPerHost, 10_000))
    // The timer repeats only to stay in the loop after it has fired, so its interval does not matter. The reference
    // cycle is broken when the loader is closed.
    let timer = Timer(deadline: Tick.never.instant, interval: .seconds(1 << 30)) { [self] _ in timerFired() }
    self.timer = timer
    loop.add(timer, forMode: .common)
  }

  /// Loads libcurl and creates the multi handle, unless that was done before.
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

  /// Closes every connection and frees all resources.
  func close() {
    guard isOpen else { return }
    isOpen = false
    for attempt in attempts { remove(attempt, keepsHandle: false) }
    if let multi { inside { _ = clc_multi_free(multi) } }
    multi = nil
    spare.freeAll()
    for watch in watches.all { watch.source.invalidate() }
    watches = WatchTable()
    connections = [:]
    lately = Array(repeating: nil, count: Self.lateSize)
    timer?.invalidate()
    timer = nil
    // These closures and attempts retain the loader.
    yielded = []
    transfers = { [] }
    isWanted = { false }
    comeBack = {}
  }

  deinit {
    if isOpen { fatalError("a loader of HTTP goes without being closed") }
  }

  // MARK: Deadlines

  func note(deadline: Tick) {
    guard deadline < sweepDue else { return }
    sweepDue = deadline
    arm()
  }

  private func sweep(_ now: Tick) {
    sweepDue = .never
    for attempt in attempts where attempt.connectDue <= now { connectingTookTooLong(attempt) }
    for transfer in transfers() where transfer.deadline <= now { transfer.timeHasCome(now) }
    for attempt in attempts { sweepDue = min(sweepDue, attempt.connectDue) }
    for transfer in transfers() { sweepDue = min(sweepDue, transfer.deadline) }
    // Deadlines less than a millisecond apart are handled together.
    if sweepDue != .never { sweepDue = max(sweepDue, now + 1_000_000) }
  }

  private func connectingTookTooLong(_ attempt: Attempt) {
    guard attempt.place != nil else { return }
    if attempt.exchange.address.isTLS { note(attempt.exchange.address, multiplexes: false) }
    end(attempt, HTTP.Error(.timedOut, "making the connection took longer than it may"))
  }

  // MARK: Attempts

  /// Returns a handle for a request, set up for its shape if possible; nil if there is no memory.
  func takeHandle(_ shape: Handle.Shape?) -> Handle? {
    spare.take(shape, inUse: attempts.count) ?? (Self.hasMemory ? Handle() : nil)
  }

  /// Whether memory is available, unless a test has injected a failure.
  private static var hasMemory: Bool { (try? SystemCall.memoryAllocate.make { 0 }) != nil }

  func start(_ attempt: Attempt) {
    attempt.place = attempts.count
    attempts.append(attempt)
    var code: Int32 = 0
    inside(asksTime: false) { code = clc_multi_add(multi, attempt.easy) }
    guard code == 0 else {
      leave(attempt)
      let error = HTTP.Error(.cannotConnect, "libcurl takes no more: \(String(cString: clc_multi_text(code)))")
      return later {
        attempt.handle.free()
        attempt.release()
        attempt.transfer.hasEnded(attempt, error, timings: .init())
      }
    }
    hasStarted = true
    settle()
  }

  /// Removes an attempt from the list of active attempts, or returns false if it is not in the list.
  @discardableResult
  private func leave(_ attempt: Attempt) -> Bool {
    guard let place = attempt.place else { return false }
    attempt.place = nil
    let last = attempts.removeLast()
    if attempts.isEmpty { lookDue = .never }
    guard last !== attempt else { return true }
    attempts[place] = last
    last.place = place
    return true
  }

  /// Abandons an attempt, whose transfer receives no more events from it.
  func drop(_ attempt: Attempt) {
    attempt.noteEnd()
    attempt.fail(HTTP.Error(.cancelled, "the attempt was given up"))
    later { [self] in remove(attempt, keepsHandle: false) }
  }

  /// Ends an attempt with an error that libcurl did not report.
  func end(_ attempt: Attempt, _ error: HTTP.Error) {
    guard attempt.place != nil else { return }
    attempt.noteEnd()
    remove(attempt, keepsHandle: false)
    attempt.transfer.hasEnded(attempt, error, timings: .init())
  }

  /// Ends an attempt whose socket cannot be watched, because it would wait forever.
  func fail(_ easy: OpaquePointer, _ error: RunLoopError) {
    guard let attempt = Handle.attempt(at: clc_get_pointer(easy, Int32(clc_info_own_data))) else { return }
    deferred.append(.call { [self] in end(attempt, HTTP.Error(.cannotConnect, "\(error)")) })
  }

  private func remove(_ attempt: Attempt, keepsHandle: Bool) {
    guard leave(attempt) else { return }
    inside(asksTime: false) { _ = clc_multi_remove(multi, attempt.easy) }
    // Others may be waiting for its connection. libcurl 8.10 to 8.18 does not ask to be called for them if the removed
    // transfer had no timeout. They begin with the timer, after transfers whose own timeout is due have ended.
    if !keepsHandle, !attempts.isEmpty { libraryDue = min(libraryDue, entered) }
    attempt.handle.attempt = nil
    if keepsHandle {
      spare.put(attempt.handle, now: entered)
    } else {
      attempt.handle.free()
    }
    attempt.release()
  }

  // MARK: Multiplexing

  /// Whether each origin supports HTTP/2, which is also `false` for those that could not be reached last time.
  var multiplexing: [String: Bool] = [:]
  /// The most recent record, because most requests are for the same URL.
  var lastNoted: (address: WebAddress, multiplexes: Bool)?

  /// Whether an origin's connection accepts concurrent requests; nil if that is not known yet.
  func multiplexes(_ address: WebAddress) -> Bool? {
    if let lastNoted, lastNoted.address === address { return lastNoted.multiplexes }
    return multiplexing[address.origin]
  }

  // MARK: Yielding. libcurl reads as long as there is data, and would starve the rest of the loop.

  /// The number of bytes accepted before the rest of the loop gets a turn.
  static let mostInCall = 512 * 1024
  @exclusivity(unchecked) private(set) var takenInCall = 0
  private var yielded: [Attempt] = []
  /// Whether there is other work waiting, and a closure that requests a call to continue.
  @exclusivity(unchecked) var isWanted: () -> Bool = { false }
  @exclusivity(unchecked) var comeBack: () -> Void = {}

  /// Whether an attempt should hold its bytes back until the rest of the loop has had a turn.
  func yields(_ attempt: Attempt, _ count: Int) -> Bool {
    guard takenInCall > 0, takenInCall >= Self.mostInCall || isWanted() else {
      takenInCall += count
      return false
    }
    if yielded.isEmpty { comeBack() }
    yielded.append(attempt)
    return true
  }

  /// Continues the attempts that yielded, after the rest of the loop has had a turn.
  func goOnWithYielded() {
    let attempts = yielded
    yielded = []
    for attempt in attempts where attempt.place != nil { attempt.resumeReading() }
    settle()
  }

  // MARK: Calling libcurl

  /// Calls libcurl, which may call back.
  ///
  /// - Parameter asksTime: Whether to read the clock, which is needed if the call may record times.
  func inside(asksTime: Bool = true, _ body: () -> Void) {
    if depth == 0 {
      takenInCall = 0
      if asksTime { entered = loop.clockNow }
    }
    depth += 1
    body()
    depth -= 1
    if depth == 0, !holdingBack.isEmpty { sendHeldBack() }
  }

  var isInside: Bool { depth > 0 }
  /// The time at which libcurl was last called, so that its callbacks need not read the clock.
  @exclusivity(unchecked) private(set) var entered = Tick.distantPast

  /// Runs a closure outside libcurl: now, or as soon as the current call of libcurl has returned.
  func later(_ body: @escaping () -> Void) {
    deferred.append(.call(body))
    settle()
  }

  /// Lets a transfer make its request outside libcurl.
  func tryLater(_ transfer: Transfer) {
    deferred.append(.attempt(transfer))
    settle()
  }

  func act(_ descriptor: Int32, _ events: Int32) {
    guard isOpen, depth == 0 else { return }
    if descriptor == Int32(clc_socket_timeout) { libraryDue = .never }
    inside { _ = clc_multi_act(multi, descriptor, events) }
    if hasHTTP2 { lookSoon() }
    settle()
  }

  @exclusivity(unchecked) private var isSettling = false
  /// Whether an attempt was started that libcurl has not begun.
  @exclusivity(unchecked) private var hasStarted = false

  /// Runs a closure and settles only once afterwards, so that requests started together begin together.
  func together(_ body: () -> Void) {
    guard depth == 0, !isSettling else { return body() }
    isSettling = true
    body()
    isSettling = false
    settle()
  }

  /// Handles ended transfers and performs deferred actions until there are none left.
  func settle() {
    guard depth == 0, !isSettling else { return }
    isSettling = true
    defer { isSettling = false }
    while isOpen {
      var code: Int32 = 0
      if let multi, let easy = clc_multi_next_ended(multi, &code) {
        guard let attempt = Handle.attempt(at: clc_get_pointer(easy, Int32(clc_info_own_data))) else { continue }
        let (error, timings) = (attempt.outcome(code), attempt.timings)
        attempt.noteEnd()
        remove(attempt, keepsHandle: error == nil && attempt.leavesHandleAsNew)
        if error != nil, attempt.requests == 0, attempt.exchange.address.isTLS {
          note(attempt.exchange.address, multiplexes: false)
        }
        attempt.transfer.hasEnded(attempt, error, timings: timings)
      } else if !deferred.isEmpty {
        var all = emptied
        emptied = []
        swap(&all, &deferred)
        // A nested `act` does not settle; this loop does it instead.
        for each in all {
          switch each {
          case .attempt(let transfer): transfer.goOnTrying()
          case .call(let body): body()
          }
        }
        all.removeAll(keepingCapacity: true)
        if all.capacity <= Self.mostRoom { emptied = all }
      } else if hasStarted {
        hasStarted = false
        // libcurl has requested a call with a timeout of zero since its last call.
        if libraryDue <= entered { act(Int32(clc_socket_timeout), 0) }
      } else {
        break
      }
    }
    if !isOpen { deferred = [] }
    arm()
  }

  // MARK: The timer

  func libraryWants(_ milliseconds: Int) {
    if milliseconds == 0, depth > 0 {
      // Immediately, which does not require reading the clock.
      libraryDue = entered
    } else {
      libraryDue = milliseconds < 0 ? .never : loop.clockNow + Int64(milliseconds) &* 1_000_000
    }
    if depth == 0 { arm() }
  }

  func arm() {
    let next = min(min(libraryDue, sweepDue), min(lookDue, spare.due))
    guard next != armed, let timer else { return }
    armed = next
    if next == .never { timer.park() } else { timer.deadline = next.instant }
  }

  private func timerFired() {
    guard isOpen else { return }
    armed = .distantPast
    let now = loop.clockNow
    if libraryDue <= now { act(Int32(clc_socket_timeout), 0) }
    if isOpen, lookDue <= now { look() }
    if isOpen, sweepDue <= now { sweep(now) }
    if isOpen, spare.due <= now { spare.trim(inUse: attempts.count, now: now) }
    if isOpen { settle() }
    arm()
  }
}
