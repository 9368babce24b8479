// SPDX-License-Identifier: Apache-2.0

/// What becomes of a request, as a value: each event changes it and returns what is to be done.
///
/// Every pair of phase and event is defined, so that an event that comes late has no effect. The effects are elsewhere.
struct OperationState: Sendable, Hashable {
  /// How much of a body has arrived.
  struct Part: Sendable, Hashable {
    /// Where the answer that is being received begins in the whole.
    var base: Int64 = 0
    /// How many decoded bytes have been handed over, those before the base included.
    var received: Int64 = 0
    /// By what the server knows this version of the body.
    var validator: Validator?
    /// How many bytes the whole has.
    var total: Int64?
    /// Whether what was handed over is not what is on the wire.
    var isDecoded = false
    /// The content codings of what is on the wire.
    var codings: [String] = []

    /// Whether a further answer can go on where this one ends.
    var canGoOn: Bool {
      guard let total, validator != nil, !isDecoded else { return false }
      return received > 0 && received <= total
    }
  }

  enum Phase: Sendable, Hashable {
    case ready
    case resolving
    case connecting
    case sending
    case receiving(Part)
    case held(Part)
    case paused(Part)
    /// The body is complete, and is being put away.
    case finishing(Part)
    /// nil: with success.
    case finished(HTTP.Error?)
  }

  enum Event: Sendable, Hashable {
    case start
    /// The host's addresses are known.
    case resolved
    /// The request is about to be sent.
    case connected
    case head(Part)
    case bytes(Int)
    /// The body has ended as it should.
    case end
    /// It has been put away.
    case closed
    case fail(HTTP.Error)
    /// It has taken longer than it may in all, even if it is paused.
    case expired(HTTP.Error)
    /// The request is made again, at once or later: for a redirect, a credential, or a retry.
    case retry(after: Duration)
    case pause
    case resume
    case cancel
    case hold
    case release
    case clientStopped

    /// Whether it is an end, if there is no other before.
    var isEnd: Bool {
      switch self {
      case .end, .closed, .fail, .expired: true
      default: false
      }
    }

    /// Whether a deadline may be nearer afterwards.
    var mayHasten: Bool {
      switch self {
      case .resolved, .connected, .head, .bytes, .end, .closed: false
      default: true
      }
    }
  }

  enum Action: Sendable, Hashable {
    /// Look the host up and ask it, after a time.
    case begin(after: Duration)
    /// Give up the look-up, the connection and the time that is waited for.
    case drop
    /// Take no bytes.
    case hold
    case release
    /// Put the body away.
    case close
    /// Report the end, once.
    case finish
  }

  /// At most two actions, in their order.
  struct Actions: Sendable, Hashable, RandomAccessCollection {
    private var first: Action?
    private var second: Action?

    init(_ first: Action? = nil, _ second: Action? = nil) { (self.first, self.second) = (first, second) }

    var startIndex: Int { 0 }
    var endIndex: Int { second != nil ? 2 : first != nil ? 1 : 0 }

    subscript(position: Int) -> Action {
      guard let action = position == 0 ? first : second else { fatalError("there is no action \(position)") }
      return action
    }
  }

  /// The phase without what belongs to it.
  private(set) var stage = HTTP.Operation.State.ready
  /// What has been handed over in a stage that has it.
  private var current = Part()
  /// Why it has ended.
  private(set) var failure: HTTP.Error?
  /// Whether the body is to be held as soon as it comes.
  private(set) var isHeld = false
  /// What was handed over before the answer that is being waited for.
  private(set) var kept = Part()

  var phase: Phase {
    switch stage {
    case .ready: .ready
    case .resolving: .resolving
    case .connecting: .connecting
    case .sending: .sending
    case .receiving: .receiving(current)
    case .held: .held(current)
    case .paused: .paused(current)
    case .finishing: .finishing(current)
    case .finished: .finished(failure)
    }
  }

  /// What has been handed over.
  var part: Part { hasCurrent ? current : kept }

  /// How many decoded bytes have been handed over.
  var received: Int64 { hasCurrent ? current.received : kept.received }
  /// How many bytes the whole has.
  var total: Int64? { hasCurrent ? current.total : kept.total }

  private var hasCurrent: Bool {
    switch stage {
    case .receiving, .held, .paused, .finishing: true
    case .ready, .resolving, .connecting, .sending, .finished: false
    }
  }

  var isFinished: Bool { stage == .finished }

  /// Whether an answer is being waited for or received.
  var isRunning: Bool {
    switch stage {
    case .resolving, .connecting, .sending, .receiving, .held: true
    case .ready, .paused, .finishing, .finished: false
    }
  }

  /// Begins with what was kept earlier.
  init(kept: Part = Part()) { self.kept = kept }

  /// Forgets what was handed over: the next answer begins afresh.
  mutating func forget() { kept = Part() }

  mutating func apply(_ event: Event) -> Actions {
    switch event {
    case .start: return start()
    case .resolved:
      if stage == .resolving { stage = .connecting }
      return Actions()
    case .connected:
      if stage == .connecting { stage = .sending }
      return Actions()
    case .head(let part): return head(part)
    case .bytes(let count): return bytes(count)
    case .end: return end()
    case .closed: return isFinishing ? finish(nil, drops: false) : Actions()
    case .fail(let error):
      guard isRunning || isFinishing || stage == .ready else { return Actions() }
      return finish(error, drops: true)
    case .expired(let error): return isFinished ? Actions() : finish(error, drops: true)
    case .retry(let delay):
      guard isRunning else { return Actions() }
      kept = part
      stage = .resolving
      return Actions(.drop, .begin(after: delay))
    case .pause: return pause()
    case .resume:
      guard stage == .paused else { return Actions() }
      kept = current
      stage = .resolving
      return Actions(.begin(after: .zero))
    case .cancel:
      return isFinished ? Actions() : finish(HTTP.Error(.cancelled, "the request was cancelled"), drops: true)
    case .hold: return hold()
    case .release: return release()
    case .clientStopped:
      return isFinished ? Actions() : finish(HTTP.Error(.stopped, "the client was stopped"), drops: true)
    }
  }

  /// Whether the body is being put away.
  var isFinishing: Bool { stage == .finishing }

  private mutating func start() -> Actions {
    guard stage == .ready else { return Actions() }
    stage = .resolving
    return Actions(.begin(after: .zero))
  }

  private mutating func head(_ part: Part) -> Actions {
    guard stage == .connecting || stage == .sending else { return Actions() }
    current = part
    stage = isHeld ? .held : .receiving
    return isHeld ? Actions(.hold) : Actions()
  }

  private mutating func bytes(_ count: Int) -> Actions {
    switch stage {
    // If it is held, they were on their way.
    case .receiving, .held: current.received += Int64(count)
    case .ready, .resolving, .connecting, .sending, .paused, .finishing, .finished: break
    }
    return Actions()
  }

  private mutating func end() -> Actions {
    guard stage == .receiving || stage == .held else { return Actions() }
    stage = .finishing
    return Actions(.close)
  }

  private mutating func pause() -> Actions {
    guard stage == .ready || isRunning else { return Actions() }
    let hasBegun = isRunning
    current = part
    stage = .paused
    return hasBegun ? Actions(.drop) : Actions()
  }

  private mutating func hold() -> Actions {
    guard !isHeld, !isFinished else { return Actions() }
    isHeld = true
    guard stage == .receiving else { return Actions() }
    stage = .held
    return Actions(.hold)
  }

  private mutating func release() -> Actions {
    guard isHeld, !isFinished else { return Actions() }
    isHeld = false
    guard stage == .held else { return Actions() }
    stage = .receiving
    return Actions(.release)
  }

  private mutating func finish(_ error: HTTP.Error?, drops: Bool) -> Actions {
    kept = part
    failure = error
    stage = .finished
    return drops ? Actions(.drop, .finish) : Actions(.finish)
  }
}
