// SPDX-License-Identifier: Apache-2.0

/// What becomes of a request, as a value: each event changes it and returns what is to be done.
///
/// Every pair of phase and event is defined, so that an event that comes late has no effect. The effects are elsewhere.
struct OperationState: Sendable, Hashable {
  /// How much of a body has come.
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
    var isCoded = false

    /// Whether a further answer can go on where this one ends.
    var canGoOn: Bool {
      guard let total, validator != nil, !isCoded else { return false }
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
    /// The request is made again, at once or later: for a redirect, a credential, or a retry.
    case retry(after: Duration)
    case pause
    case resume
    case cancel
    case hold
    case release
    case clientStopped
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
    case finish(HTTP.Error?)
  }

  private(set) var phase = Phase.ready
  /// Whether the body is to be held as soon as it comes.
  private(set) var isHeld = false
  /// What was handed over before the answer that is being waited for.
  private(set) var kept = Part()

  /// What has been handed over.
  var part: Part {
    switch phase {
    case .receiving(let part), .held(let part), .paused(let part), .finishing(let part): part
    case .ready, .resolving, .connecting, .sending, .finished: kept
    }
  }

  var isFinished: Bool { if case .finished = phase { true } else { false } }

  /// Whether an answer is being waited for or received.
  var isRunning: Bool {
    switch phase {
    case .resolving, .connecting, .sending, .receiving, .held: true
    case .ready, .paused, .finishing, .finished: false
    }
  }

  /// Begins with what was kept earlier.
  init(kept: Part = Part()) { self.kept = kept }

  /// Forgets what was handed over: the next answer begins afresh.
  mutating func forget() { kept = Part() }

  mutating func apply(_ event: Event) -> [Action] {
    switch event {
    case .start: return start()
    case .resolved:
      if phase == .resolving { phase = .connecting }
      return []
    case .connected:
      if phase == .connecting { phase = .sending }
      return []
    case .head(let part): return head(part)
    case .bytes(let count): return bytes(count)
    case .end: return end()
    case .closed:
      guard case .finishing = phase else { return [] }
      return finish(nil, drops: false)
    case .fail(let error):
      guard isRunning || isFinishing || phase == .ready else { return [] }
      return finish(error, drops: true)
    case .retry(let delay):
      guard isRunning else { return [] }
      kept = part
      phase = .resolving
      return [.drop, .begin(after: delay)]
    case .pause: return pause()
    case .resume:
      guard case .paused(let part) = phase else { return [] }
      kept = part
      phase = .resolving
      return [.begin(after: .zero)]
    case .cancel: return isFinished ? [] : finish(HTTP.Error(.cancelled, "the request was cancelled"), drops: true)
    case .hold: return hold()
    case .release: return release()
    case .clientStopped:
      return isFinished ? [] : finish(HTTP.Error(.stopped, "the client was stopped"), drops: true)
    }
  }

  /// Whether the body is being put away.
  var isFinishing: Bool { if case .finishing = phase { true } else { false } }

  private mutating func start() -> [Action] {
    guard phase == .ready else { return [] }
    phase = .resolving
    return [.begin(after: .zero)]
  }

  private mutating func head(_ part: Part) -> [Action] {
    guard phase == .connecting || phase == .sending else { return [] }
    phase = isHeld ? .held(part) : .receiving(part)
    return isHeld ? [.hold] : []
  }

  private mutating func bytes(_ count: Int) -> [Action] {
    switch phase {
    case .receiving(var part):
      part.received += Int64(count)
      phase = .receiving(part)
    case .held(var part):
      // They were on their way when the request was held.
      part.received += Int64(count)
      phase = .held(part)
    case .ready, .resolving, .connecting, .sending, .paused, .finishing, .finished: break
    }
    return []
  }

  private mutating func end() -> [Action] {
    switch phase {
    case .receiving(let part), .held(let part):
      phase = .finishing(part)
      return [.close]
    case .ready, .resolving, .connecting, .sending, .paused, .finishing, .finished: return []
    }
  }

  private mutating func pause() -> [Action] {
    if phase == .ready {
      phase = .paused(kept)
      return []
    }
    guard isRunning else { return [] }
    phase = .paused(part)
    return [.drop]
  }

  private mutating func hold() -> [Action] {
    guard !isHeld, !isFinished else { return [] }
    isHeld = true
    guard case .receiving(let part) = phase else { return [] }
    phase = .held(part)
    return [.hold]
  }

  private mutating func release() -> [Action] {
    guard isHeld, !isFinished else { return [] }
    isHeld = false
    guard case .held(let part) = phase else { return [] }
    phase = .receiving(part)
    return [.release]
  }

  private mutating func finish(_ error: HTTP.Error?, drops: Bool) -> [Action] {
    kept = part
    phase = .finished(error)
    return drops ? [.drop, .finish(error)] : [.finish(error)]
  }
}
