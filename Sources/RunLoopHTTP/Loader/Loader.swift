// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore

/// Drives all exchanges of a client on one loop: libcurl's sockets are its sources, libcurl's timer is its timer.
///
/// All of it belongs to the loop's thread.
final class Loader: @unchecked Sendable {
  // Sendable: what changes is used by the loop's thread alone. Nothing is called while a variable is being changed, so
  // that those of each request are not checked for overlapping accesses.

  let loop: RunLoop
  @exclusivity(unchecked) private(set) var multi: OpaquePointer?
  private let connectionsPerHost: Int
  /// The attempts that the library has; each knows its place.
  @exclusivity(unchecked) private(set) var attempts: [Attempt] = []
  @exclusivity(unchecked) private(set) var spare = SpareHandles()
  @exclusivity(unchecked) var watches = WatchTable()
  /// The sockets of connections on which a request was sent.
  var connections: [SocketWatch.Ends: SocketWatch] = [:]
  /// Those of the last connections, by the last bits of their own ports.
  @exclusivity(unchecked) var lately: [SocketWatch?] = Array(repeating: nil, count: lateSize)
  static let lateSize = 256
  /// Looks at connections of plain HTTP/2, once there was one.
  var floodGuard: FloodGuard?
  /// How deep we are in the library, which must not be called while it calls us.
  @exclusivity(unchecked) private var depth = 0
  @exclusivity(unchecked) private var deferred: [Deferred] = []
  /// What was taken last, without its elements: its room is used again.
  @exclusivity(unchecked) private var emptied: [Deferred] = []
  /// How many elements such room may have.
  static let mostRoom = 1024
  @exclusivity(unchecked) var isOpen = true

  /// What is done when the library is left.
  private enum Deferred {
    case attempt(Transfer)
    case call(() -> Void)
  }

  // The one timer: for the library, and for the deadlines of transfers.
  private var timer: Timer?
  @exclusivity(unchecked) private var libraryDue = Tick.never
  @exclusivity(unchecked) private var sweepDue = Tick.never
  @exclusivity(unchecked) private var armed = Tick.never
  /// When connections that may be HTTP/2's are looked at: `Loader+Looking.swift`.
  @exclusivity(unchecked) var lookDue = Tick.never
  /// The connection on which nothing had come when the library was called for it just now.
  @exclusivity(unchecked) var lookedAt: SocketWatch?
  @exclusivity(unchecked) var hasHTTP2 = false

  /// The transfers that have not ended.
  @exclusivity(unchecked) var transfers: () -> [Transfer] = { [] }

  init(loop: RunLoop, connectionsPerHost: Int) {
    self.loop = loop
    self.connectionsPerHost = max(1, min(connectionsPerHost, 10_000))
    // It repeats so that it stays when it has fired; its interval does not matter.
    // It is released when the loader is closed.
    let timer = Timer(deadline: Tick.never.instant, interval: .seconds(1 << 30)) { [self] _ in timerFired() }
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
    // Whatever holds it in turn.
    yielded = []
    transfers = { [] }
    isWanted = { false }
    comeBack = {}
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
    for attempt in attempts where attempt.connectDue <= now { connectingTookTooLong(attempt) }
    for transfer in transfers() where transfer.deadline <= now { transfer.timeHasCome(now) }
    for attempt in attempts { sweepDue = min(sweepDue, attempt.connectDue) }
    for transfer in transfers() { sweepDue = min(sweepDue, transfer.deadline) }
    // Deadlines that lie close together are looked at together.
    if sweepDue != .never { sweepDue = max(sweepDue, now + 1_000_000) }
  }

  /// Ends an attempt whose connection was not made in time.
  private func connectingTookTooLong(_ attempt: Attempt) {
    guard attempt.place != nil else { return }
    if attempt.exchange.address.isTLS { note(attempt.exchange.address, multiplexes: false) }
    end(attempt, HTTP.Error(.timedOut, "making the connection took longer than it may"))
  }

  // Attempts.

  /// A handle for a request of a shape, or for one that is like no other; nil if there is no memory.
  func takeHandle(_ shape: Handle.Shape?) -> Handle? {
    spare.take(shape, inUse: attempts.count) ?? (Self.hasMemory ? Handle() : nil)
  }

  /// Whether the library finds memory, as far as a test has planned that.
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

  /// Takes an attempt out of those that the library has; false if it is none of them.
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

  /// Gives an attempt up; its transfer hears nothing more of it.
  func drop(_ attempt: Attempt) {
    attempt.noteEnd()
    attempt.fail(HTTP.Error(.cancelled, "the attempt was given up"))
    later { [self] in remove(attempt, keepsHandle: false) }
  }

  /// Ends an attempt with an error of ours.
  func end(_ attempt: Attempt, _ error: HTTP.Error) {
    guard attempt.place != nil else { return }
    attempt.noteEnd()
    remove(attempt, keepsHandle: false)
    attempt.transfer.hasEnded(attempt, error, timings: .init())
  }

  /// A socket of an attempt cannot be watched: it would never go on.
  func fail(_ easy: OpaquePointer, _ error: RunLoopError) {
    guard let attempt = Handle.attempt(at: clc_get_pointer(easy, Int32(clc_info_own_data))) else { return }
    deferred.append(.call { [self] in end(attempt, HTTP.Error(.cannotConnect, "\(error)")) })
  }

  private func remove(_ attempt: Attempt, keepsHandle: Bool) {
    guard leave(attempt) else { return }
    inside(asksTime: false) { _ = clc_multi_remove(multi, attempt.easy) }
    // Others may wait for its connection. From 8.10 to 8.18 libcurl does not ask to be called for them if the removed
    // one had no timeout. They begin by the timer, after those have ended whose own timeout is due now.
    if !keepsHandle, !attempts.isEmpty { libraryDue = min(libraryDue, entered) }
    attempt.handle.attempt = nil
    if keepsHandle {
      spare.put(attempt.handle, now: entered)
    } else {
      attempt.handle.free()
    }
    attempt.release()
  }

  // Multiplexing.

  /// Whether the servers speak HTTP/2, by their origins; false too for those that could not be reached last.
  var multiplexing: [String: Bool] = [:]
  /// What was noted last: most requests ask for the same address.
  var lastNoted: (address: WebAddress, multiplexes: Bool)?

  /// Whether an origin's connection takes further requests; nil if that is not known yet.
  func multiplexes(_ address: WebAddress) -> Bool? {
    if let lastNoted, lastNoted.address === address { return lastNoted.multiplexes }
    return multiplexing[address.origin]
  }

  // Yielding. The library reads as long as there is something to read, and would let nobody else come.

  /// How many bytes are taken before everybody else comes.
  static let mostInCall = 512 * 1024
  @exclusivity(unchecked) private(set) var takenInCall = 0
  private var yielded: [Attempt] = []
  /// Whether there is work to be taken, and what asks for coming back.
  @exclusivity(unchecked) var isWanted: () -> Bool = { false }
  @exclusivity(unchecked) var comeBack: () -> Void = {}

  /// Whether an attempt is to wait with bytes until everybody else has arrived.
  func yields(_ attempt: Attempt, _ count: Int) -> Bool {
    guard takenInCall > 0, takenInCall >= Self.mostInCall || isWanted() else {
      takenInCall += count
      return false
    }
    if yielded.isEmpty { comeBack() }
    yielded.append(attempt)
    return true
  }

  /// Everybody else has arrived.
  func goOnWithYielded() {
    let attempts = yielded
    yielded = []
    for attempt in attempts where attempt.place != nil { attempt.resumeReading() }
    settle()
  }

  // The library.

  /// Calls the library, which may call back.
  ///
  /// - Parameter asksTime: Whether something may come of it whose time is noted.
  func inside(asksTime: Bool = true, _ body: () -> Void) {
    if depth == 0 {
      takenInCall = 0
      if asksTime { entered = loop.clockNow }
    }
    depth += 1
    body()
    depth -= 1
  }

  var isInside: Bool { depth > 0 }
  /// When the library was called last: what it calls within need not ask for the time.
  @exclusivity(unchecked) private(set) var entered = Tick.distantPast

  /// Does something as soon as we are not in the library: at once, or when we have left it.
  func later(_ body: @escaping () -> Void) {
    deferred.append(.call(body))
    settle()
  }

  /// Lets a transfer ask its host as soon as we are not in the library.
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
  /// Whether an attempt was started that the library has not begun.
  @exclusivity(unchecked) private var hasStarted = false

  /// Does several things, and then once what follows from them: requests that start together are begun together.
  func together(_ body: () -> Void) {
    guard depth == 0, !isSettling else { return body() }
    isSettling = true
    body()
    isSettling = false
    settle()
  }

  /// Takes what has ended, and does what was deferred.
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
        // `act` settles only when nobody else does: here the loop goes on.
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
        // It waits for a timeout of zero, since it was called last.
        if libraryDue <= entered { act(Int32(clc_socket_timeout), 0) }
      } else {
        break
      }
    }
    if !isOpen { deferred = [] }
    arm()
  }

  // The timer.

  func libraryWants(_ milliseconds: Int) {
    if milliseconds == 0, depth > 0 {
      // At once, which need not ask for the time.
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
