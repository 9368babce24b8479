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

    /// Adds cookies, each in the place of the one with its name, domain, path and port.
    ///
    /// A cookie whose time is over removes that one. Cookies are sent only if
    /// ``HTTP/Configuration/storesCookies`` allows it.
    public func setCookies(_ cookies: [Cookie]) { core.jar.set(cookies) }

    /// Writes all cookies to a file that the process's user alone can read.
    ///
    /// The format is that of curl and wget (Netscape's `cookies.txt`). A cookie for another port than the usual ones
    /// has a line that is a comment to these. An existing file is replaced, and a link is not followed.
    ///
    /// - Throws: ``HTTP/Error/Code/fileFailed``.
    public func saveCookies(to path: String) throws(HTTP.Error) { try CookieFile.write(cookies, to: path) }

    /// Reads cookies from a file and adds them, as ``setCookies(_:)`` does.
    ///
    /// - Throws: ``HTTP/Error/Code/fileFailed`` if the file cannot be read, has more than 16 MiB, or contains a line
    ///   that is no cookie; no cookie is added then.
    public func loadCookies(from path: String) throws(HTTP.Error) { core.jar.set(try CookieFile.read(path)) }

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
