// SPDX-License-Identifier: Apache-2.0

/// The state machine of a request, as a value: each event changes the state and returns the actions to perform.
///
/// Every combination of phase and event is defined, so a late event has no effect. The side effects live elsewhere.
struct OperationState: Sendable, Hashable {
  /// The part of a body that has arrived.
  struct Part: Sendable, Hashable {
    /// The offset in the complete body at which the current response begins.
    var base: Int64 = 0
    /// The number of decoded bytes delivered, including those before the base.
    var received: Int64 = 0
    /// The validator of this version of the body.
    var validator: Validator?
    var total: Int64?
    /// Whether the delivered bytes were decoded and therefore differ from those on the wire.
    var isDecoded = false
    /// The content codings of the bytes on the wire.
    var codings: [String] = []

    /// Whether another response can continue where this one ends.
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
    /// The body is complete and is being stored.
    case finishing(Part)
    /// The request has ended; nil means success.
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
    /// The body is complete.
    case end
    /// The body has been stored.
    case closed
    case fail(HTTP.Error)
    /// The total timeout has expired, which also applies to a paused request.
    case expired(HTTP.Error)
    /// The request is made again, immediately or later, for a redirect, a credential or a retry.
    case retry(after: Duration)
    case pause
    case resume
    case cancel
    case hold
    case release
    case clientStopped

    /// Whether the event ends the request, provided that it has not ended before.
    var isEnd: Bool {
      switch self {
      case .end, .closed, .fail, .expired: true
      default: false
      }
    }

    /// Whether the event may bring a deadline forward.
    var mayHasten: Bool {
      switch self {
      case .resolved, .connected, .head, .bytes, .end, .closed: false
      default: true
      }
    }
  }

  enum Action: Sendable, Hashable {
    /// Start resolving the host and making the request, after a delay.
    case begin(after: Duration)
    /// Abandon the lookup, the connection and any pending delay.
    case drop
    /// Stop reading the body.
    case hold
    case release
    /// Store the complete body.
    case close
    /// Report the end. This happens once.
    case finish
  }

  /// Up to two actions, in order.
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

  /// The phase without its associated values.
  private(set) var stage = HTTP.Operation.State.ready
  /// The part delivered so far, for the stages that have one.
  private var current = Part()
  private(set) var failure: HTTP.Error?
  /// Whether the body is held, or will be as soon as it begins.
  private(set) var isHeld = false
  /// The part delivered before the response that is being awaited.
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

  /// The part delivered so far.
  var part: Part { hasCurrent ? current : kept }

  /// The number of decoded bytes delivered so far.
  var received: Int64 { hasCurrent ? current.received : kept.received }
  var total: Int64? { hasCurrent ? current.total : kept.total }

  private var hasCurrent: Bool {
    switch stage {
    case .receiving, .held, .paused, .finishing: true
    case .ready, .resolving, .connecting, .sending, .finished: false
    }
  }

  var isFinished: Bool { stage == .finished }

  /// Whether a response is being awaited or received.
  var isRunning: Bool {
    switch stage {
    case .resolving, .connecting, .sending, .receiving, .held: true
    case .ready, .paused, .finishing, .finished: false
    }
  }

  /// Starts with a part kept from an earlier request.
  init(kept: Part = Part()) { self.kept = kept }

  /// Discards the delivered part, so that the next response starts over.
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

  /// Whether the complete body is being stored.
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
    // Bytes of a held body had already been read when it was held.
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
