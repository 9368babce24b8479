// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

/// The receiver of an operation: writes the output, keeps the state for other threads, and calls the program's
/// closures.
final class OperationReceiver: Receiver, @unchecked Sendable {
  // Sendable: the lock guards the state shared between threads; the rest is used only by the loader's thread.

  typealias Outcome = Result<(HTTP.Body, HTTP.Response), HTTP.Error>

  private let output: HTTP.Output
  let multiplexer: MultiplexerSource
  private let isCancelled = Atomic<Bool>(false)
  /// Whether anything is reported on the user's loop before the end.
  private let reports = Atomic<Bool>(false)
  private let entries = Atomic<Int>(0)

  // Used only on the loader's thread.
  @exclusivity(unchecked) private var bytes: [UInt8] = []
  private var fileReceiver: FileReceiver?
  /// The path of the output file and the URL it is downloaded from.
  private let file: (path: String, url: String)?

  private let lock = Lock()
  // Guarded by the lock, so accesses cannot overlap and need no exclusivity check.
  @exclusivity(unchecked) private var snapshot = HTTP.Operation.State.ready
  @exclusivity(unchecked) private var latest = HTTP.Progress()
  @exclusivity(unchecked) private var isProgressPosted = false
  @exclusivity(unchecked) private var head: HTTP.Response?
  @exclusivity(unchecked) private var outcome: Outcome?
  @exclusivity(unchecked) private var hooks = Hooks()
  @exclusivity(unchecked) private var hasHooks = false
  @exclusivity(unchecked) private var hasProgressHook = false
  /// The first completion closure, as most operations have only one.
  @exclusivity(unchecked) private var completion: Completion?
  @exclusivity(unchecked) private var moreCompletions: [Completion] = []
  @exclusivity(unchecked) private var streams: [AsyncStream<HTTP.Progress>.Continuation] = []

  /// A structure that stores the closure without a reabstraction thunk.
  struct Completion: Sendable {
    let call: @Sendable (Outcome) -> Void
  }

  // These types give the user's closures a name in the call-out records.

  private struct ResponseHook {
    let call: @Sendable (HTTP.Response) -> Void
  }

  private struct ProgressHook {
    let call: @Sendable (HTTP.Progress) -> Void
  }

  private struct RedirectHook {
    let call: @Sendable (HTTP.Request, HTTP.Response) -> HTTP.Request?
  }

  private struct ChallengeHook {
    let call: @Sendable (HTTP.AuthenticationChallenge) -> HTTP.Credential?
  }

  private struct CookiesHook {
    let call: @Sendable ([HTTP.Cookie]) -> Void
  }

  struct Hooks {
    var response: (@Sendable (HTTP.Response) -> Void)?
    var progress: (@Sendable (HTTP.Progress) -> Void)?
    var redirect: (@Sendable (HTTP.Request, HTTP.Response) -> HTTP.Request?)?
    var challenge: (@Sendable (HTTP.AuthenticationChallenge) -> HTTP.Credential?)?
    var cookies: (@Sendable ([HTTP.Cookie]) -> Void)?
  }

  init(_ output: HTTP.Output, _ url: String, _ multiplexer: MultiplexerSource) {
    self.output = output
    self.multiplexer = multiplexer
    file = if case .file(let path) = output { (path, url) } else { nil }
  }

  // Can be called from any thread.

  var state: HTTP.Operation.State { lock.withLock { snapshot } }
  var progress: HTTP.Progress { lock.withLock { latest } }
  var response: HTTP.Response? { lock.withLock { head } }
  func noteCancelled() { isCancelled.store(true, ordering: .releasing) }

  /// Registers with the multiplexer until the end, or until the operation is released without a start.
  func enter() {
    entries.wrappingAdd(1, ordering: .relaxed)
    multiplexer.enter()
  }

  deinit {
    guard outcome == nil else { return }
    for stream in streams { stream.finish() }
    for _ in 0..<entries.load(ordering: .relaxed) { multiplexer.leave() }
  }

  /// All hooks at once, because returning a single closure from `withLock` would wrap it in a thunk.
  private var currentHooks: Hooks { lock.withLock { hooks } }

  func setHooks(_ change: (inout Hooks) -> Void) {
    var hooks = lock.withLock { self.hooks }
    change(&hooks)
    let isReporting = hooks.response != nil || hooks.progress != nil || hooks.cookies != nil
    if isReporting, !reports.exchange(true, ordering: .acquiringAndReleasing) { enter() }
    // The old hooks are released outside the lock.
    lock.lock()
    hasHooks = true
    hasProgressHook = hooks.progress != nil
    swap(&self.hooks, &hooks)
    lock.unlock()
  }

  /// Calls a closure once with the outcome: on the thread that ends the operation, or immediately if it has ended.
  func whenFinished(_ body: @escaping @Sendable (Outcome) -> Void) {
    lock.lock()
    if outcome == nil {
      if completion == nil {
        completion = Completion(call: body)
      } else {
        moreCompletions.append(Completion(call: body))
      }
      return lock.unlock()
    }
    let outcome = outcome
    lock.unlock()
    if let outcome { body(outcome) }
  }

  // Used only on the loader's thread.

  func prepare() throws(HTTP.Error) -> OperationState.Part? {
    guard let file else { return nil }
    let part = try PartFile(file.path, url: PartNote.name(of: file.url), resumes: true)
    fileReceiver = FileReceiver(part) { _ in }
    return part.kept
  }

  var canRestart: Bool { true }
  var defaultLimit: Int64? { if case .memory = output { HTTP.Configuration.memoryLimit } else { nil } }

  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    if offset == 0 { bytes = [] }
    switch output {
    case .memory, .discard: break
    case .file: try fileReceiver?.begin(response, at: offset)
    case .sink(let sink): try Self.call(sink) { try sink.begin(response, at: offset) }
    }
    lock.lock()
    head = response
    let isReported = hooks.response != nil
    lock.unlock()
    guard isReported else { return }
    deliver { [self] in
      guard let hook = currentHooks.response else { return }
      noteCall(of: ResponseHook(call: hook))
      hook(response)
    }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool {
    switch output {
    case .memory: self.bytes.append(contentsOf: bytes)
    case .discard: break
    case .file: _ = try fileReceiver?.take(bytes)
    case .sink(let sink): try Self.call(sink) { try sink.write(bytes) }
    }
    return true
  }

  var closesAtOnce: Bool { if case .memory = output { true } else { false } }

  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool {
    switch output {
    case .memory, .discard: return true
    case .file: return try fileReceiver?.close(done) ?? true
    case .sink(let sink):
      try Self.call(sink) { try sink.end() }
      return true
    }
  }

  private static func call(_ sink: any HTTP.Sink, _ body: () throws -> Void) throws(HTTP.Error) {
    noteCall(on: type(of: sink))
    do {
      try body()
    } catch let error as HTTP.Error {
      throw error
    } catch {
      throw HTTP.Error(.fileFailed, "the sink has thrown: \(error)")
    }
  }

  func redirect(_ next: HTTP.Request, after response: HTTP.Response) -> HTTP.Request? {
    guard let hook = currentHooks.redirect else { return next }
    noteCall(of: RedirectHook(call: hook))
    return hook(next, response)
  }

  var answersChallenges: Bool { lock.withLock { hooks.challenge != nil } }

  func answer(_ challenge: HTTP.AuthenticationChallenge) -> HTTP.Credential? {
    guard let hook = currentHooks.challenge else { return nil }
    noteCall(of: ChallengeHook(call: hook))
    return hook(challenge)
  }

  func note(_ cookies: [HTTP.Cookie]) {
    guard lock.withLock({ hooks.cookies != nil }) else { return }
    deliver { [self] in
      guard let hook = currentHooks.cookies else { return }
      noteCall(of: CookiesHook(call: hook))
      hook(cookies)
    }
  }

  /// Returns a stream that starts with the current progress and then buffers only the newest value.
  func progressValues() -> AsyncStream<HTTP.Progress> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: HTTP.Progress.self, bufferingPolicy: .bufferingNewest(1))
    lock.lock()
    let hasEnded = outcome != nil
    if !hasEnded { streams.append(continuation) }
    let latest = latest
    lock.unlock()
    continuation.yield(latest)
    if hasEnded { continuation.finish() }
    return stream
  }

  func note(_ state: HTTP.Operation.State, _ progress: HTTP.Progress) {
    lock.lock()
    snapshot = state
    guard latest != progress else { return lock.unlock() }
    latest = progress
    guard hasProgressHook || !streams.isEmpty else { return lock.unlock() }
    let streams = streams
    let isNews = hasProgressHook && !isProgressPosted && state != .finished
    if isNews { isProgressPosted = true }
    lock.unlock()
    for stream in streams { stream.yield(progress) }
    guard isNews else { return }
    // At most one call per pass of the loop, which reports the latest progress at that time.
    deliver { [self] in
      lock.lock()
      isProgressPosted = false
      let (hook, progress) = (hooks.progress, latest)
      lock.unlock()
      guard let hook else { return }
      noteCall(of: ProgressHook(call: hook))
      hook(progress)
    }
  }

  /// Calls a closure on the user's loop, unless the request has been cancelled by then.
  private func deliver(_ body: @escaping @Sendable () -> Void) {
    multiplexer.post { [self] in if !isCancelled.load(ordering: .acquiring) { body() } }
  }

  func finish(_ result: Result<HTTP.Response, HTTP.Error>) { finish(result, isCallOut: true) }

  /// Ends the operation, possibly inside the function that starts it if the request is rejected, which is not a
  /// call-out.
  func finish(_ result: Result<HTTP.Response, HTTP.Error>, isCallOut: Bool) {
    fileReceiver?.finish(result)
    let body = HTTP.Body(bytes)
    bytes = []
    let outcome = result.map { (body, $0) }
    func call(_ completion: Completion) {
      if isCallOut { noteCall(of: completion) }
      completion.call(outcome)
    }
    lock.lock()
    self.outcome = outcome
    snapshot = .finished
    let first = completion
    completion = nil
    let others = moreCompletions
    moreCompletions = []
    let streams = streams
    self.streams = []
    lock.unlock()
    for stream in streams { stream.finish() }
    if let first { call(first) }
    for completion in others { call(completion) }
    // Queued callbacks run first and still find their hooks.
    guard reports.load(ordering: .acquiring) else { return removeHooks() }
    multiplexer.post { [self] in
      removeHooks()
      multiplexer.leave()
    }
  }

  private func removeHooks() {
    if lock.withLock({ hasHooks }) { setHooks { $0 = Hooks() } }
  }
}
