// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// What a client and its requests hold: the loop, its intake, and the loader.
final class ClientCore: @unchecked Sendable {
  // Sendable: the lock guards what any thread uses; the rest is used by the loop's thread alone.

  let configuration: HTTP.Configuration
  let jar = CookieJar()
  private let givenLoop: RunLoop?
  private let generation = ForkGeneration.current
  private let environment: ProxyChoice
  private let lock = Lock()
  /// Whether there is work that the loop was asked to take.
  private let hasWork = Atomic<Bool>(false)
  /// Held while the thread is being started, and by nobody else.
  private let startLock = Lock()

  // Guarded by the lock.
  private var life = ClientLife()
  private var home: Home?
  private var work: [@Sendable () -> Void] = []
  /// Whether the loop was asked to take the work.
  private var isAwake = false
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var multiplexers: [MultiplexerKey: WeakMultiplexer] = [:]

  // The loop's thread alone.
  private var knownLoop: RunLoop?
  private var loader: Loader?
  private var transfers: [ObjectIdentifier: Transfer] = [:]
  var names = NameCache()

  /// Where the client lives, once it does.
  fileprivate struct Home {
    let loop: RunLoop
    let intake: RunLoop.Source
    /// Its own thread; none on a loop that was given.
    let thread: ResidentThread?
  }

  init(_ configuration: HTTP.Configuration, on loop: RunLoop?) {
    self.configuration = configuration
    givenLoop = loop
    environment = ProxyChoice(configuration.proxy)
  }

  // Any thread.

  var state: HTTP.State { generation.isPast ? .finished : lock.withLock { life.state } }
  var report: HTTP.StopReport { lock.withLock { life.report } }

  /// Begins a transfer; the reason if that is impossible, and then nothing was done.
  func begin(_ transfer: Transfer, with event: OperationState.Event = .start) -> HTTP.Error? {
    guard !generation.isPast else {
      return HTTP.Error(.stopped, "the client belongs to the process that this one was forked from")
    }
    do throws(HTTP.Error) {
      try settleIn()
    } catch {
      return error
    }
    lock.lock()
    guard life.begin() else {
      lock.unlock()
      return HTTP.Error(.stopped, "the client takes no more requests")
    }
    let home = leave { [self] in
      transfers[ObjectIdentifier(transfer)] = transfer
      transfer.begin(with: event)
      endIfOver()
    }
    lock.unlock()
    home?.wake()
    return nil
  }

  /// Does something on the loop's thread; nothing if the client has finished.
  func post(_ body: @escaping @Sendable () -> Void) {
    guard !generation.isPast else { return }
    lock.lock()
    guard life.state != .finished else { return lock.unlock() }
    let home = leave(body)
    lock.unlock()
    home?.wake()
  }

  /// Under the lock: leaves work, and returns whom to wake.
  private func leave(_ body: @escaping @Sendable () -> Void) -> Home? {
    work.append(body)
    guard !isAwake, let home else { return nil }
    isAwake = true
    hasWork.store(true, ordering: .releasing)
    return home
  }

  /// Makes the client live somewhere, unless it does.
  private func settleIn() throws(HTTP.Error) {
    if lock.withLock({ home != nil }) { return }
    startLock.lock()
    defer { startLock.unlock() }
    let isNeeded = lock.withLock { home == nil && life.state == .running }
    guard isNeeded else { return }
    let intake = RunLoop.Source(cancel: { [weak self] _, _ in self?.loopHasEnded() }) { [weak self] in self?.takeWork()
    }
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
    guard loop.add(intake, forMode: .common) else {
      throw HTTP.Error(.stopped, "the client's run loop has ended")
    }
    // It may have been stopped meanwhile, and then nobody would end what was made here.
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
    var left: [@Sendable () -> Void] = []
    switch action {
    case .nothing: break
    case .drain, .cut:
      if home == nil {
        life.finish()
        swap(&left, &work)
        swap(&waiters, &waiting)
      } else {
        awake = leave { [self] in cut(everything: action == .cut) }
      }
    }
    let state = life.state
    lock.unlock()
    awake?.wake()
    withExtendedLifetime(left) {}
    for waiter in waiters { waiter.resume() }
    return state
  }

  /// Waits until everything is closed and the thread has ended.
  func finished() async -> HTTP.StopReport {
    // A thread that is not there may hold the lock.
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

  /// What brings call-outs to a loop in some modes; one for all operations of it.
  func multiplexer(_ loop: RunLoop, _ modes: [RunLoop.Mode], isForCookies: Bool = false) -> MultiplexerSource {
    let label: StaticString = isForCookies ? "HTTP.CookieSource" : "HTTP.MultiplexerSource"
    guard !generation.isPast else { return MultiplexerSource(loop: loop, modes: modes, label: label) }
    return lock.withLock {
      let key = MultiplexerKey(loop: ObjectIdentifier(loop), modes: modes, isForCookies: isForCookies)
      if let known = multiplexers[key]?.source { return known }
      if multiplexers.count > 64 { multiplexers = multiplexers.filter { $0.value.source != nil } }
      let made = MultiplexerSource(loop: loop, modes: modes, label: label)
      multiplexers[key] = WeakMultiplexer(source: made)
      return made
    }
  }

  /// The loop; the client lives somewhere when this is asked.
  ///
  /// The loop's thread.
  var loop: RunLoop {
    if let knownLoop { return knownLoop }
    let found = lock.withLock { home?.loop } ?? givenLoop ?? .current
    knownLoop = found
    return found
  }
}

// The loop's thread.
extension ClientCore {
  var now: Tick { loop.clockNow }

  private func takeWork() {
    if let loader, loader.isInside { return loader.later { [self] in takeWork() } }
    lock.lock()
    let all = work
    work = []
    isAwake = false
    hasWork.store(false, ordering: .releasing)
    lock.unlock()
    for body in all { body() }
    loader?.goOnWithYielded()
  }

  /// Ends the requests that are not to come to their end, and then perhaps the client.
  private func cut(everything: Bool) {
    // Nobody would resume what waits; a body that is being put away comes to its end by itself.
    for transfer in Array(transfers.values)
    where everything || !transfer.state.isRunning && !transfer.state.isFinishing {
      transfer.apply(.clientStopped)
    }
    endIfOver()
  }

  /// A request is paused while the client drains: nobody will resume it.
  func isDraining() -> Bool { lock.withLock { life.state != .running } }

  private func loopHasEnded() {
    // Also called when the intake is invalidated, and once for each mode.
    guard lock.withLock({ home != nil && life.state != .finished }) else { return }
    stop(.immediately)
    for transfer in Array(transfers.values) { transfer.apply(.clientStopped) }
    lock.lock()
    let left = work
    work = []
    lock.unlock()
    // Those that had begun and not come in yet.
    for body in left { body() }
    for transfer in Array(transfers.values) { transfer.apply(.clientStopped) }
    shutDown()
  }

  func unregister(_ transfer: Transfer) { transfers[ObjectIdentifier(transfer)] = nil }

  /// A transfer has reported its end.
  func hasEnded(_ transfer: Transfer, _ error: HTTP.Error?) {
    lock.withLock { life.end(error) }
    endIfOver()
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

  // The loader.

  func openLoader() throws(HTTP.Error) {
    try readyLoader().open()
  }

  private func readyLoader() -> Loader {
    if let loader { return loader }
    let made = Loader(loop: loop, connectionsPerHost: configuration.connectionsPerHost)
    made.transfers = { [weak self] in self.map { Array($0.transfers.values) } ?? [] }
    made.isWanted = { [weak self] in self?.hasWork.load(ordering: .relaxed) ?? false }
    made.comeBack = { [weak self] in self?.post {} }
    loader = made
    return made
  }

  func takeEasy() -> OpaquePointer? { loader?.takeEasy() }
  func makeAttempt(
    _ transfer: Transfer, _ easy: OpaquePointer, _ exchange: Exchange, _ source: (any BodySource)?
  ) -> Attempt { Attempt(readyLoader(), transfer, easy, exchange, source) }
  func start(_ attempt: Attempt) { readyLoader().start(attempt) }
  func drop(_ attempt: Attempt) { loader?.drop(attempt) }
  func multiplexes(_ origin: String) -> Bool { loader?.multiplexes(origin) ?? false }
  func note(deadline: Tick) { if deadline != .never { readyLoader().note(deadline: deadline) } }
  func settle() { loader?.settle() }
  func later(_ body: @escaping () -> Void) { readyLoader().later(body) }
  func proxy(for address: WebAddress) throws(HTTP.Error) -> WebAddress? { try environment.proxy(for: address) }
}

extension ClientCore.Home {
  fileprivate func wake() {
    intake.signal()
    loop.wakeUp()
  }
}

private struct MultiplexerKey: Hashable {
  let loop: ObjectIdentifier
  let modes: [RunLoop.Mode]
  let isForCookies: Bool
}

private struct WeakMultiplexer {
  weak var source: MultiplexerSource?
}
