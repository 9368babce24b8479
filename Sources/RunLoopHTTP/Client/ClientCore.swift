// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// The state that a client shares with its requests: the loop, its source for incoming work, and the loader.
final class ClientCore: @unchecked Sendable {
  // Sendable: the lock guards the state shared between threads; the rest is used only by the loop's thread.

  let settings: OwnConfiguration
  let jar = CookieJar()
  private let givenLoop: RunLoop?
  private let generation = ForkGeneration.current
  private let environment: ProxyChoice
  private let lock = Lock()
  /// Whether the loop has been asked to take work.
  ///
  /// The loader reads it with relaxed ordering, because the work itself is taken with the lock held.
  private let hasWork = Atomic<Bool>(false)
  /// Serializes starting the thread.
  private let startLock = Lock()

  // Guarded by the lock, so accesses cannot overlap. The properties that every request uses skip the exclusivity
  // check.
  @exclusivity(unchecked) private var life = ClientLife()
  @exclusivity(unchecked) private var home: Home?
  @exclusivity(unchecked) private var work: [Work] = []
  /// Whether the source has been signaled since the work was last taken.
  @exclusivity(unchecked) private var isAwake = false
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var multiplexers: [MultiplexerKey: WeakMultiplexer] = [:]
  @exclusivity(unchecked) private var lastMultiplexer: WeakMultiplexer?

  // Used only by the loop's thread. None of them is mutated across a call to other code.
  @exclusivity(unchecked) private var knownLoop: RunLoop?
  @exclusivity(unchecked) private var loader: Loader?
  @exclusivity(unchecked) private var transfers: [Transfer] = []
  @exclusivity(unchecked) var names = NameCache()
  @exclusivity(unchecked) private var lastAddress: (text: String, address: WebAddress)?
  @exclusivity(unchecked) private var lastShape: Handle.Shape?
  /// The storage of the last batch of work, kept empty so that its capacity can be reused.
  @exclusivity(unchecked) private var emptied: [Work] = []

  /// The loop that the client runs on, once the first request has set it up.
  fileprivate struct Home {
    let loop: RunLoop
    let intake: RunLoop.Source
    /// The client's own thread; nil if the program passed a loop.
    let thread: ResidentThread?
  }

  /// A unit of work for the loop's thread.
  fileprivate enum Work: Sendable {
    case begin(Transfer)
    case call(@Sendable () -> Void)
  }

  init(_ configuration: HTTP.Configuration, on loop: RunLoop?) {
    settings = OwnConfiguration(configuration)
    givenLoop = loop
    environment = ProxyChoice(configuration.proxy)
  }

  // Can be called from any thread.

  var configuration: HTTP.Configuration { settings.value }
  var state: HTTP.State { generation.isPast ? .finished : lock.withLock { life.state } }
  var report: HTTP.StopReport { lock.withLock { life.report } }

  /// Begins a transfer, or returns the reason if that is impossible.
  func begin(_ transfer: Transfer, with event: OperationState.Event = .start) -> HTTP.Error? {
    guard !generation.isPast else {
      return HTTP.Error(.stopped, "the client belongs to the process that this one was forked from")
    }
    lock.lock()
    if home == nil {
      lock.unlock()
      do throws(HTTP.Error) {
        try settleIn()
      } catch {
        return error
      }
      lock.lock()
    }
    guard life.begin() else {
      lock.unlock()
      return HTTP.Error(.stopped, "the client takes no more requests")
    }
    let awake: Home?
    if case .start = event {
      awake = leave(.begin(transfer))
    } else {
      awake = leave(.call { [self] in begin(transfer, by: event) })
    }
    lock.unlock()
    awake?.wake()
    return nil
  }

  /// Runs a closure on the loop's thread, or drops it if the client has finished.
  func post(_ body: @escaping @Sendable () -> Void) {
    guard !generation.isPast else { return }
    lock.lock()
    guard life.state != .finished else { return lock.unlock() }
    let home = leave(.call(body))
    lock.unlock()
    home?.wake()
  }

  /// Enqueues work and returns the home to wake, if it has not been signaled yet; requires the lock.
  private func leave(_ piece: Work) -> Home? {
    work.append(piece)
    guard !isAwake, let home else { return nil }
    isAwake = true
    hasWork.store(true, ordering: .releasing)
    return home
  }

  /// Chooses the client's loop, and starts its thread if necessary.
  private func settleIn() throws(HTTP.Error) {
    startLock.lock()
    defer { startLock.unlock() }
    let isNeeded = lock.withLock { home == nil && life.state == .running }
    guard isNeeded else { return }
    // The source retains the core until it is invalidated, which happens when the client finishes or its loop ends.
    let intake = RunLoop.Source(cancel: { [self] _, _ in loopHasEnded() }) { [self] in takeWork() }
    var thread: ResidentThread?
    let loop: RunLoop
    if let givenLoop {
      loop = givenLoop
    } else {
      do throws(ThreadError) {
        let made = try ResidentThread(name: "HTTP.Loader")
        thread = made
        loop = made.runLoop
      } catch {
        // The next request tries again.
        throw HTTP.Error(.cannotConnect, "the loader's thread cannot start: \(error)")
      }
    }
    guard loop.offer(intake, forMode: .common) else {
      throw HTTP.Error(.stopped, "the client's run loop has ended")
    }
    // The client may have been stopped in the meantime, and then nothing else would end the new source and thread.
    let isLate = lock.withLock {
      guard life.state == .running else { return true }
      home = Home(loop: loop, intake: intake, thread: thread)
      return false
    }
    guard isLate else { return }
    intake.invalidate()
    thread?.stop(.afterPendingWork)
  }

  @discardableResult
  func stop(_ policy: HTTP.StopPolicy) -> HTTP.State {
    guard !generation.isPast else { return .finished }
    lock.lock()
    let action = life.stop(policy)
    var awake: Home?
    var waiters: [CheckedContinuation<Void, Never>] = []
    var left: [Work] = []
    switch action {
    case .nothing: break
    case .drain, .cut:
      if home == nil {
        life.finish()
        swap(&left, &work)
        swap(&waiters, &waiting)
      } else {
        awake = leave(.call { [self] in cut(everything: action == .cut) })
      }
    }
    let state = life.state
    lock.unlock()
    awake?.wake()
    withExtendedLifetime(left) {}
    for waiter in waiters { waiter.resume() }
    return state
  }

  /// Waits until all connections are closed and the thread has ended.
  func finished() async -> HTTP.StopReport {
    // In a forked child, the lock may be held by a thread that does not exist there.
    guard !generation.isPast else { return HTTP.StopReport() }
    await withCheckedContinuation { continuation in
      lock.lock()
      let isOver = life.state == .finished
      if !isOver { waiting.append(continuation) }
      lock.unlock()
      if isOver { continuation.resume() }
    }
    lock.noteResumption()
    if let thread = lock.withLock({ home?.thread }) { _ = await thread.finished() }
    return report
  }

  /// Returns the source, shared by all operations of a loop, that delivers callbacks in the given modes.
  func multiplexer(_ loop: RunLoop, _ modes: [RunLoop.Mode], isForCookies: Bool = false) -> MultiplexerSource {
    let label: StaticString = isForCookies ? "HTTP.CookieSource" : "HTTP.MultiplexerSource"
    guard !generation.isPast else { return MultiplexerSource(loop: loop, modes: modes, label: label) }
    let key = MultiplexerKey(loop: ObjectIdentifier(loop), modes: modes, isForCookies: isForCookies)
    lock.lock()
    defer { lock.unlock() }
    if let lastMultiplexer, lastMultiplexer.key == key, let source = lastMultiplexer.source { return source }
    if let known = multiplexers[key], let source = known.source {
      lastMultiplexer = known
      return source
    }
    if multiplexers.count > 64 { multiplexers = multiplexers.filter { $0.value.source != nil } }
    let made = MultiplexerSource(loop: loop, modes: modes, label: label)
    multiplexers[key] = WeakMultiplexer(key, made)
    return made
  }

  /// The loop that `settleIn()` has chosen, used only on the loop's thread.
  var loop: RunLoop {
    if let knownLoop { return knownLoop }
    let found = lock.withLock { home?.loop } ?? givenLoop ?? .current
    knownLoop = found
    return found
  }
}

// Used only on the loop's thread.
extension ClientCore {
  var now: Tick { loop.clockNow }

  private func takeWork() {
    if let loader, loader.isInside { return loader.later { [self] in takeWork() } }
    var all = emptied
    emptied = []
    lock.lock()
    swap(&all, &work)
    isAwake = false
    hasWork.store(false, ordering: .releasing)
    lock.unlock()
    if let loader {
      loader.together { for piece in all { take(piece) } }
    } else {
      for piece in all { take(piece) }
    }
    all.removeAll(keepingCapacity: true)
    if all.capacity <= Loader.mostRoom { emptied = all }
    loader?.goOnWithYielded()
  }

  private func take(_ piece: Work) {
    switch piece {
    case .begin(let transfer): begin(transfer, by: .start)
    case .call(let body): body()
    }
  }

  private func begin(_ transfer: Transfer, by event: OperationState.Event) {
    transfer.place = transfers.count
    transfers.append(transfer)
    transfer.begin(with: event)
  }

  /// Ends the requests that must not run to completion, and shuts the client down if none are left.
  private func cut(everything: Bool) {
    // Paused requests would never be resumed. A finishing request, whose body is being stored, ends by itself.
    for transfer in transfers
    where everything || !transfer.state.isRunning && !transfer.state.isFinishing {
      transfer.apply(.clientStopped)
    }
    endIfOver()
  }

  /// Whether the client is being stopped, which means that a paused request would never be resumed.
  func isDraining() -> Bool { lock.withLock { life.state != .running } }

  private func loopHasEnded() {
    // Also called when the intake is invalidated, and once for each mode.
    guard lock.withLock({ home != nil && life.state != .finished }) else { return }
    stop(.immediately)
    for transfer in transfers { transfer.apply(.clientStopped) }
    lock.lock()
    let left = work
    work = []
    lock.unlock()
    // Transfers that were begun but not yet taken from the queue.
    for piece in left { take(piece) }
    for transfer in transfers { transfer.apply(.clientStopped) }
    shutDown()
  }

  func unregister(_ transfer: Transfer) {
    guard let place = transfer.place else { return }
    transfer.place = nil
    let last = transfers.removeLast()
    guard last !== transfer else { return }
    transfers[place] = last
    last.place = place
  }

  /// Records the end of a transfer, and shuts a stopping client down after its last one.
  func hasEnded(_ transfer: Transfer, _ error: HTTP.Error?) {
    lock.lock()
    life.end(error)
    let isOver = life.isOver
    lock.unlock()
    if isOver { later { [self] in shutDown() } }
  }

  private func endIfOver() {
    guard lock.withLock({ life.isOver }) else { return }
    later { [self] in shutDown() }
  }

  private func shutDown() {
    lock.lock()
    guard life.state != .finished, let home else { return lock.unlock() }
    life.finish()
    let waiters = waiting
    waiting = []
    let left = work
    work = []
    lock.unlock()
    loader?.close()
    loader = nil
    home.intake.invalidate()
    home.thread?.stop(.afterPendingWork)
    withExtendedLifetime(left) {}
    for waiter in waiters { waiter.resume() }
  }

  // MARK: The loader

  func openLoader() throws(HTTP.Error) {
    try readyLoader().open()
  }

  private func readyLoader() -> Loader {
    if let loader { return loader }
    let made = Loader(loop: loop, connectionsPerHost: configuration.connectionsPerHost)
    // `Loader.close()` clears these closures, which breaks the reference cycle.
    made.transfers = { [self] in transfers }
    made.isWanted = { [self] in hasWork.load(ordering: .relaxed) }
    made.comeBack = { [self] in post {} }
    loader = made
    return made
  }

  /// Returns the options that an exchange shares with others, reusing the previous object if it is equal.
  func shape(of exchange: Exchange, _ settings: OwnConfiguration, hasBody: Bool) -> Handle.Shape? {
    let shape = exchange.shape(settings, hasBody: hasBody, orElse: lastShape)
    if let shape, shape !== lastShape { lastShape = shape }
    return shape
  }

  func takeHandle(_ shape: Handle.Shape?) -> Handle? { loader?.takeHandle(shape) }
  /// The number of idle handles kept for future requests.
  var spareCount: Int { loader?.spare.count ?? 0 }
  func makeAttempt(
    _ transfer: Transfer, _ handle: Handle, _ exchange: consuming Exchange, _ source: (any BodySource)?
  ) -> Attempt { Attempt(readyLoader(), transfer, handle, exchange, source) }
  func start(_ attempt: Attempt) { readyLoader().start(attempt) }
  func drop(_ attempt: Attempt) { loader?.drop(attempt) }
  func multiplexes(_ address: WebAddress) -> Bool { loader?.multiplexes(address) ?? false }
  func note(deadline: Tick) { if deadline != .never { readyLoader().note(deadline: deadline) } }
  func settle() { loader?.settle() }
  func later(_ body: @escaping () -> Void) { readyLoader().later(body) }
  func tryLater(_ transfer: Transfer) { readyLoader().tryLater(transfer) }
  /// Parses a URL, or returns the cached result if it is the same text as last time.
  func address(_ text: String) throws(WebAddress.Failure) -> WebAddress {
    if let lastAddress, lastAddress.text == text { return lastAddress.address }
    let address = try WebAddress(text)
    lastAddress = (text, address)
    return address
  }

  func proxy(for address: WebAddress) throws(HTTP.Error) -> ProxyAddress? {
    try environment.proxy(for: address)
  }
}

extension ClientCore.Home {
  fileprivate func wake() {
    intake.signal()
    loop.wakeUp()
  }
}
