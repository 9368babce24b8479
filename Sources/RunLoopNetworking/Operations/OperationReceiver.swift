// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

/// What an operation makes of what comes: its output, its state for everybody, its call-outs.
final class OperationReceiver: Receiver, @unchecked Sendable {
  // Sendable: the lock guards what other threads see; the rest is used by the loader's thread alone.

  typealias Outcome = Result<(HTTP.Body, HTTP.Response), HTTP.Error>

  private let output: HTTP.Output
  let multiplexer: MultiplexerSource
  private let isCancelled = Atomic<Bool>(false)
  /// Whether something is reported on the user's loop before the end.
  private let reports = Atomic<Bool>(false)

  // The loader's thread.
  private var bytes: [UInt8] = []
  private var file: FileReceiver?
  private let path: String?

  private let lock = Lock()
  // Guarded by the lock.
  private var snapshot = HTTP.Operation.State.ready
  private var latest = HTTP.Progress()
  private var isProgressPosted = false
  private var head: HTTP.Response?
  private var outcome: Outcome?
  private var hooks = Hooks()
  private var completions: [Completion] = []
  private var streams: [AsyncStream<HTTP.Progress>.Continuation] = []

  /// In a structure of its own it is kept without a thunk.
  struct Completion: Sendable {
    let call: @Sendable (Outcome) -> Void
  }

  // What names the user's closures in records.

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
    if case .file(let path) = output { self.path = path } else { path = nil }
    self.url = url
  }

  private let url: String

  // Any thread.

  var state: HTTP.Operation.State { lock.withLock { snapshot } }
  var progress: HTTP.Progress { lock.withLock { latest } }
  var response: HTTP.Response? { lock.withLock { head } }
  func noteCancelled() { isCancelled.store(true, ordering: .releasing) }

  /// All of them, as one closure by itself would be wrapped on its way here.
  private var currentHooks: Hooks { lock.withLock { hooks } }

  func setHooks(_ change: (inout Hooks) -> Void) {
    var hooks = lock.withLock { self.hooks }
    change(&hooks)
    let isReporting = hooks.response != nil || hooks.progress != nil || hooks.cookies != nil
    if isReporting, !reports.exchange(true, ordering: .acquiringAndReleasing) {
      multiplexer.enter()
    }
    // What was there is released outside the lock.
    lock.withLock { swap(&self.hooks, &hooks) }
  }

  /// Calls a block with the end, once; on the thread that brings it, or here if it has come.
  func whenFinished(_ body: @escaping @Sendable (Outcome) -> Void) {
    lock.lock()
    let outcome = outcome
    if outcome == nil { completions.append(Completion(call: body)) }
    lock.unlock()
    if let outcome { body(outcome) }
  }

  // The loader's thread.

  /// Opens the file, if there is one.
  func prepare() throws(HTTP.Error) -> OperationState.Part? {
    guard let path else { return nil }
    let part = try PartFile(path, url: PartNote.name(of: url), resumes: true)
    file = FileReceiver(part) { _ in }
    return part.kept
  }

  var canRestart: Bool { true }
  var defaultLimit: Int64? { if case .memory = output { HTTP.Configuration.memoryLimit } else { nil } }

  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    if offset == 0 { bytes = [] }
    switch output {
    case .memory, .discard: break
    case .file: try file?.begin(response, at: offset)
    case .sink(let sink): try Self.call(sink) { try sink.begin(response, at: offset) }
    }
    lock.withLock { head = response }
    guard lock.withLock({ hooks.response != nil }) else { return }
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
    case .file: _ = try file?.take(bytes)
    case .sink(let sink): try Self.call(sink) { try sink.write(bytes) }
    }
    return true
  }

  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool {
    switch output {
    case .memory, .discard: return true
    case .file: return try file?.close(done) ?? true
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

  /// The progress from now on: what is there, and then the newest whenever the task takes one.
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

  func note(_ state: OperationState, sent: Int64, ofSent: Int64?) {
    lock.lock()
    snapshot = HTTP.Operation.State(state.phase)
    let before = latest
    latest.sent = sent
    latest.totalToSend = ofSent
    latest.received = state.part.received
    latest.total = state.part.total
    let streams = latest != before ? streams : []
    let progress = latest
    let isNews = latest != before && hooks.progress != nil && !isProgressPosted && !state.isFinished
    if isNews { isProgressPosted = true }
    lock.unlock()
    for stream in streams { stream.yield(progress) }
    guard isNews else { return }
    // At most one call-out a pass: what comes until then is in it.
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

  /// Calls the user's loop, unless the request is cancelled before.
  private func deliver(_ body: @escaping @Sendable () -> Void) {
    multiplexer.post { [self] in if !isCancelled.load(ordering: .acquiring) { body() } }
  }

  func finish(_ result: Result<HTTP.Response, HTTP.Error>) { finish(result, isCallOut: true) }

  /// The end; a request that is rejected has it within the function that starts it.
  func finish(_ result: Result<HTTP.Response, HTTP.Error>, isCallOut: Bool) {
    file?.finish(result)
    let body = HTTP.Body(bytes)
    bytes = []
    let outcome = result.map { (body, $0) }
    lock.lock()
    self.outcome = outcome
    snapshot = .finished
    let completions = completions
    self.completions = []
    let streams = streams
    self.streams = []
    lock.unlock()
    for stream in streams { stream.finish() }
    for completion in completions {
      if isCallOut { noteCall(of: completion) }
      completion.call(outcome)
    }
    // What waits to be called comes before, and finds its hook.
    guard reports.load(ordering: .acquiring) else { return setHooks { $0 = Hooks() } }
    multiplexer.post { [self] in
      setHooks { $0 = Hooks() }
      multiplexer.leave()
    }
  }
}
