// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP {
  /// A request that calls its delegate as `NSURLConnection` does: on the loops and in the modes that it is scheduled
  /// in.
  ///
  /// While it runs it has two sources of version 0 in each of these: one for the delegate and one for cookies, which
  /// all connections of the client share. What arrives while the loops run in other modes waits; from half a mebibyte
  /// on nothing more is received. It ends exactly once, or is silent after ``cancel()``.
  package final class Connection: @unchecked Sendable {
    // Sendable: the lock guards what changes.

    /// Where the delegate is called.
    struct Place: Sendable {
      let loop: RunLoop
      let mode: RunLoop.Mode
      /// In the loop while the connection runs.
      let sources: [MultiplexerSource]

      func isSame(_ other: Place) -> Bool { loop == other.loop && mode == other.mode }
    }

    enum Phase { case ready, running, ended }

    package typealias Executor = @Sendable (@escaping @Sendable () -> Void) -> Void

    let core: ClientCore
    /// How each of its requests is made.
    let configuration: OwnConfiguration
    let maximumRedirects: Int

    let lock = Lock()
    // Guarded by the lock.
    var phase = Phase.ready
    var delegate: (any ConnectionDelegate)?
    var places: [Place] = []
    var executor: Executor?
    /// Counts the executors, so that one that was replaced does not deliver.
    var executorNumber = 0
    var mail = ConnectionMail()
    var cookies: [Response] = []
    /// Whether somebody was asked to deliver.
    var isPosted = false
    var isDelivering = false
    var isAwaitingAnswer = false
    var isPaused = false
    var asking: Asking
    /// What the server's challenges were answered with.
    var authentication = Authentication()
    /// What the answer is awaited to.
    var asked: (challenge: Challenge, address: WebAddress, response: Response)?

    /// The request that is being made.
    struct Asking {
      /// Without what was added to it.
      var request: Request
      var redirects = 0
      /// Counts the requests, so that nothing of an earlier one is reported.
      var generation = 0
      /// What answers the server's challenge.
      var authorization: String?
      var transfer: Transfer?
      /// Whether the client knows of the transfer.
      var hasBegun = false
    }

    /// Makes a connection that has not been started and is scheduled nowhere.
    ///
    /// - Parameters:
    ///   - client: Whose connections are used.
    ///   - request: What to ask for.
    ///   - change: Changes the client's configuration for this connection.
    ///   - delegate: Held until the end.
    package init(
      _ client: Client, _ request: Request, delegate: any ConnectionDelegate,
      _ change: (inout Configuration) -> Void = { _ in }
    ) {
      core = client.core
      var configuration = client.configuration
      change(&configuration)
      maximumRedirects = configuration.maximumRedirects
      // The delegate is asked about redirects, on its loop.
      configuration.maximumRedirects = 0
      self.configuration = OwnConfiguration(configuration)
      self.delegate = delegate
      asking = Asking(request: request)
    }
  }
}

// Its life. Any thread.
extension HTTP.Connection {
  package var hasEnded: Bool { lock.withLock { phase == .ended } }
  /// Whether the end has arrived and is to be reported.
  package var hasReceivedEnd: Bool { lock.withLock { mail.hasEnd } }
  /// How many bytes of the body have arrived and are to be reported.
  package var waitingByteCount: Int { lock.withLock { mail.byteCount } }
  /// What is asked for, after redirects.
  package var currentRequest: HTTP.Request { lock.withLock { asking.request } }

  /// Begins; without a place, it is scheduled on the calling thread's loop in the default mode.
  ///
  /// Calling it again has no effect.
  package func start() {
    lock.lock()
    guard phase == .ready else { return lock.unlock() }
    if places.isEmpty, executor == nil { places.append(place(.current, .default)) }
    phase = .running
    let (sources, request) = (executor == nil ? places.flatMap(\.sources) : [], asking.request)
    for source in sources { source.noteUser() }
    lock.unlock()
    for source in sources { source.settle() }
    ask(request, isFirst: true)
  }

  /// Ends without a further call-out; one that is being made on another thread comes to its end.
  package func cancel() {
    lock.lock()
    guard phase != .ended else { return lock.unlock() }
    let transfer = asking.hasBegun ? asking.transfer : nil
    let left = end()
    lock.unlock()
    transfer?.cancel()
    left.leave()
  }

  /// Ends the connection to the server and keeps what has arrived; nothing is reported until ``resume()``.
  package func pause() { setPaused(true) }

  /// Goes on with the body where that is possible, otherwise afresh, with another answer.
  package func resume() { setPaused(false) }

  private func setPaused(_ isPaused: Bool) {
    lock.lock()
    guard phase != .ended, self.isPaused != isPaused else { return lock.unlock() }
    self.isPaused = isPaused
    let transfer = asking.hasBegun ? asking.transfer : nil
    lock.unlock()
    if isPaused { transfer?.pause() } else { transfer?.resume() }
    call()
  }

  /// What is to be let go outside the lock.
  struct Left {
    var sources: [MultiplexerSource] = []
    var delegate: (any ConnectionDelegate)?
    var mail: ConnectionMail?
    var transfer: Transfer?
    var executor: Executor?

    func leave() { for source in sources { source.settle() } }
  }

  /// Under the lock: it has ended.
  func end() -> Left {
    let left = Left(
      sources: phase == .running && executor == nil ? places.flatMap(\.sources) : [], delegate: delegate, mail: mail,
      transfer: asking.transfer, executor: executor)
    for source in left.sources { source.dropUser() }
    phase = .ended
    delegate = nil
    places = []
    executor = nil
    mail = ConnectionMail()
    cookies = []
    asking.transfer = nil
    return left
  }
}
