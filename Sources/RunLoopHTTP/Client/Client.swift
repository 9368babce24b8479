// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension HTTP {
  /// An HTTP client.
  ///
  /// All of a client's connections run on one run loop for their whole lifetime.
  ///
  /// The loop belongs either to a thread of the client's own, `HTTP.Loader`, which the first request starts, or to
  /// the program, which passes it to the initializer. The client keeps its connections open until it is stopped, or
  /// until the last reference to it is released and its requests have ended. A client, and everything it returns, can
  /// be used from any thread.
  ///
  /// The client uses libcurl, which it loads when the first request is made. If libcurl is missing, every request
  /// ends with ``HTTP/Error/Code/noLibrary``. A forked child cannot use its parent's clients: its requests end with
  /// ``HTTP/Error/Code/stopped``.
  public final class Client: Sendable {
    let core: ClientCore
    private let isShared: Bool

    /// Creates a client.
    ///
    /// Nothing is opened or started before the first request, which reports any errors.
    ///
    /// - Parameters:
    ///   - configuration: The client's configuration.
    ///   - loop: The loop that the connections run on, in the common modes. It has to be running. If it is nil, the
    ///     client starts a thread of its own.
    public convenience init(_ configuration: Configuration = .init(), on loop: RunLoop? = nil) {
      self.init(configuration, on: loop, isShared: false)
    }

    private init(_ configuration: Configuration, on loop: RunLoop?, isShared: Bool) {
      core = ClientCore(configuration, on: loop)
      self.isShared = isShared
    }

    deinit { core.stop(.afterPendingWork) }

    /// A client shared by the whole program, which cannot be stopped.
    public static let shared = Client(.init(), on: nil, isShared: true)

    /// The client's configuration.
    public var configuration: Configuration { core.configuration }

    /// Whether the client accepts requests, is stopping, or has finished.
    public var state: State { core.state }

    /// The stored cookies that have not expired, if the configuration allows cookies to be stored.
    public var cookies: [Cookie] { core.jar.all }

    /// Adds cookies, each of which replaces an existing cookie with the same name, domain, path and port.
    ///
    /// An expired cookie removes the existing one. Cookies are sent only if ``HTTP/Configuration/storesCookies`` is
    /// set.
    public func setCookies(_ cookies: [Cookie]) { core.jar.set(cookies) }

    /// Writes all cookies to a file that only the process's user can read.
    ///
    /// The format is that of curl and wget (Netscape's `cookies.txt`). A cookie for a non-default port is written as
    /// a line that those programs treat as a comment. An existing file is replaced, and a symbolic link is not
    /// followed.
    ///
    /// - Throws: ``HTTP/Error/Code/fileFailed``.
    public func saveCookies(to path: String) throws(HTTP.Error) { try CookieFile.write(cookies, to: path) }

    /// Reads cookies from a file and adds them with ``setCookies(_:)``.
    ///
    /// - Throws: ``HTTP/Error/Code/fileFailed`` if the file cannot be read, is larger than 16 MiB, or contains a line
    ///   that is not a cookie. No cookies are added in that case.
    public func loadCookies(from path: String) throws(HTTP.Error) { core.jar.set(try CookieFile.read(path)) }

    /// Removes all cookies.
    public func removeCookies() { core.jar.removeAll() }

    /// Stops accepting requests and returns immediately.
    ///
    /// When the last request has ended, all connections are closed and the client's thread ends. Calling it again has
    /// no effect, except that an immediate stop overrides one that waits for pending requests. It has no effect on
    /// ``shared``.
    ///
    /// - Returns: The state after the call.
    @discardableResult
    public func stop(_ policy: StopPolicy = .afterPendingWork) -> State { isShared ? state : core.stop(policy) }

    /// Waits until the client has been stopped, its connections are closed and its thread has ended.
    ///
    /// This method does not stop the client.
    ///
    /// - Returns: A summary of how the client's requests ended.
    public func finished() async -> StopReport { await core.finished() }
  }
}
