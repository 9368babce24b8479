// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension HTTP {
  /// Makes requests.
  ///
  /// All its connections live on one run loop, from the connect to the end.
  ///
  /// The loop is that of a thread of the client's own, `HTTP.Loader`, which the first request starts, or a loop that
  /// the program passes. The client holds its connections until it is stopped, or until nobody holds the client and its
  /// requests have ended. A client, and everything that it returns, can be used from any thread.
  ///
  /// The client uses libcurl, which is opened when the first request is made. If it is missing, every request ends with
  /// ``HTTP/Error/Code/noLibrary``. A child of a fork cannot use its parent's clients: its requests end with
  /// ``HTTP/Error/Code/stopped``.
  public final class Client: Sendable {
    let core: ClientCore
    private let isShared: Bool

    /// Makes a client.
    ///
    /// Nothing is opened or started before the first request, which reports errors.
    ///
    /// - Parameters:
    ///   - configuration: How the client behaves.
    ///   - loop: The loop that its connections live on, in the common modes; it has to run. With nil the client starts
    ///     a thread of its own.
    public convenience init(_ configuration: Configuration = .init(), on loop: RunLoop? = nil) {
      self.init(configuration, on: loop, isShared: false)
    }

    private init(_ configuration: Configuration, on loop: RunLoop?, isShared: Bool) {
      core = ClientCore(configuration, on: loop)
      self.isShared = isShared
    }

    deinit { core.stop(.afterPendingWork) }

    /// A client for the whole program, which cannot be stopped.
    public static let shared = Client(.init(), on: nil, isShared: true)

    /// How the client behaves.
    public var configuration: Configuration { core.configuration }

    /// What the client does with requests.
    public var state: State { core.state }

    /// The cookies that were set, if the configuration allows them to be kept.
    public var cookies: [Cookie] { core.jar.all }

    /// Forgets all cookies.
    public func removeCookies() { core.jar.removeAll() }

    /// Takes no more requests, and returns at once.
    ///
    /// When the last request has ended, all connections are closed and the client's thread ends. Calling it again has
    /// no effect, except that an immediate stop overrules one that is not. On ``shared`` it has no effect.
    ///
    /// - Returns: The state after the call.
    @discardableResult
    public func stop(_ policy: StopPolicy = .afterPendingWork) -> State { isShared ? state : core.stop(policy) }

    /// Waits until the client was stopped, its connections are closed and its thread has ended.
    ///
    /// It does not stop the client.
    ///
    /// - Returns: What has happened to its requests.
    public func finished() async -> StopReport { await core.finished() }
  }
}
