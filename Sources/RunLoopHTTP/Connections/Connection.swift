// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP {
  /// A request that calls its delegate like `NSURLConnection`, on the loops and in the modes it is scheduled in.
  ///
  /// While it runs, it has two version 0 sources in each of them, one for the delegate and one for cookies, which all
  /// connections of the client share. Events that arrive while the loops run in other modes are queued; once half a
  /// mebibyte is queued, nothing more is received. A connection ends exactly once, or silently after ``cancel()``.
  package final class Connection: @unchecked Sendable {
    // Sendable: the lock guards the mutable state.

    /// A loop and a mode in which the delegate is called.
    struct Place: Sendable {
      let loop: RunLoop
      let mode: RunLoop.Mode
      /// The sources, which are in the loop while the connection runs.
      let sources: [MultiplexerSource]

      func isSame(_ other: Place) -> Bool { loop == other.loop && mode == other.mode }
    }

    enum Phase { case ready, running, ended }

    package typealias Executor = @Sendable (@escaping @Sendable () -> Void) -> Void

    let core: ClientCore
    /// The configuration of each request that the connection makes.
    let configuration: OwnConfiguration
    let maximumRedirects: Int

    let lock = Lock()
    // Guarded by the lock.
    var phase = Phase.ready
    var delegate: (any ConnectionDelegate)?
    var places: [Place] = []
    var executor: Executor?
    /// The number of executor changes, which keeps a replaced executor from delivering.
    var executorNumber = 0
    var mail = ConnectionMail()
    var cookies: [Response] = []
    /// Whether a delivery has been requested.
    var isPosted = false
    var isDelivering = false
    var isAwaitingAnswer = false
    var isPaused = false
    var asking: Asking
    /// The credentials used for the server's challenges.
    var authentication = Authentication()
    /// The challenge that the delegate has not responded to yet.
    var asked: (challenge: Challenge, address: WebAddress, response: Response)?

    /// The state of the current request.
    struct Asking {
      /// The request without the delegate's additions.
      var request: Request
      var redirects = 0
      /// The number of requests made so far, which keeps events of an earlier one from being reported.
      var generation = 0
      /// The `Authorization` header sent in response to the server's challenge.
      var authorization: String?
      var transfer: Transfer?
      /// Whether the transfer has been registered with the client.
      var hasBegun = false
    }

    /// Creates a connection that is neither started nor scheduled.
    ///
    /// - Parameters:
    ///   - client: The client whose connections are used.
    ///   - request: The request to make.
    ///   - change: Modifies the client's configuration for this connection.
    ///   - delegate: The delegate, which is retained until the end.
    package init(
      _ client: Client, _ request: Request, delegate: any ConnectionDelegate,
      _ change: (inout Configuration) -> Void = { _ in }
    ) {
      core = client.core
      var configuration = client.configuration
      change(&configuration)
      maximumRedirects = configuration.maximumRedirects
      // Redirects are decided by the delegate, on its loop.
      configuration.maximumRedirects = 0
      self.configuration = OwnConfiguration(configuration)
      self.delegate = delegate
      asking = Asking(request: request)
    }
  }
}

// MARK: - Lifecycle. Can be called from any thread.
extension HTTP.Connection {
  package var hasEnded: Bool { lock.withLock { phase == .ended } }
  /// Whether the end has been received but not reported yet.
  package var hasReceivedEnd: Bool { lock.withLock { mail.hasEnd } }
  /// The number of bytes of the body that have been received but not reported yet.
  package var waitingByteCount: Int { lock.withLock { mail.byteCount } }
  /// The current request, after redirects.
  package var currentRequest: HTTP.Request { lock.withLock { asking.request } }

  /// Starts the connection, scheduled on the calling thread's loop in the default mode unless it has a place already.
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

  /// Ends the connection without further callbacks, except for one in progress on another thread.
  package func cancel() {
    lock.lock()
    guard phase != .ended else { return lock.unlock() }
    let transfer = asking.hasBegun ? asking.transfer : nil
    let left = end()
    lock.unlock()
    transfer?.cancel()
    left.leave()
  }

  /// Closes the connection to the server, keeps the received data, and reports nothing until ``resume()``.
  package func pause() { setPaused(true) }

  /// Continues the body where possible; otherwise starts over with a new response.
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

  /// References to release outside the lock.
  struct Left {
    var sources: [MultiplexerSource] = []
    var delegate: (any ConnectionDelegate)?
    var mail: ConnectionMail?
    var transfer: Transfer?
    var executor: Executor?

    func leave() { for source in sources { source.settle() } }
  }

  /// Ends the connection; requires the lock.
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
