// SPDX-License-Identifier: Apache-2.0

public import Dispatch
public import Foundation
public import FoundationNetworking
public import RunLoopCore
import RunLoopHTTP
public import RunLoopThreads

/// A request as a Foundation operation, on AFNetworking's own thread.
///
/// Its start, pause and cancellation are performed on the thread named `AFNetworking`, on whose loop its connection is
/// scheduled in ``runLoopModes``; its delegate methods are called there. It can be used with queues, dependencies and
/// `maxConcurrentOperationCount`. It finishes exactly once. If it is cancelled before its start, it finishes when it
/// is started, which a queue does.
///
/// This is the class of the same name in AFNetworking 2, with these differences: a paused body is only continued with
/// the same version of it and otherwise starts over; a paused operation that is cancelled finishes; progress is
/// reported at most once per pass of the loop. There is no cache, and therefore no block for it.
open class AFURLConnectionOperation: Foundation.Operation, NSURLConnectionDataDelegate, NSCopying, @unchecked Sendable {
  // Sendable: the lock guards the mutable state; the program sets properties before the start, as for any operation.

  /// The thread of all operations; nil if it could not be started, and in a forked child.
  public class var networkRequestThread: RunLoopThreads.Thread? {
    HTTP.ConnectionOperation.sharedThread?.thread
  }

  /// The request.
  public let request: URLRequest
  /// The credential for servers that request one; nil, the default, means the shared storage, if that is used.
  ///
  /// It is for the scheme, host and port of ``request``. Unlike AFNetworking, the operation does not send it to a
  /// server at another origin to which a redirect has led.
  open var credential: URLCredential?
  /// Whether credentials of `URLCredentialStorage` are used; the default is `true`.
  open var shouldUseCredentialStorage = true
  /// The trust policy; by default, the default policy.
  open var securityPolicy = AFSecurityPolicy.default
  /// Any data of the program's; empty by default.
  open var userInfo: [AnyHashable: Any] = [:]
  /// The stream that receives the body, opened and closed by the operation; nil, the default, keeps the body as data.
  open var outputStream: OutputStream?
  /// The queue of completion blocks; nil, the default, means the main queue.
  open var completionQueue: DispatchQueue?
  /// The group of completion blocks; nil, the default, means none.
  open var completionGroup: DispatchGroup?

  private let core: HTTP.ConnectionOperation?
  private let lock = Lock()
  // Guarded by the lock.
  private var state = Content()
  private var connection: NSURLConnection?

  /// The received data, the outcome and the program's blocks.
  private struct Content {
    var response: URLResponse?
    var error: (any Error)?
    var data: Data?
    var received: Int64 = 0
    var isEnding = false
    var hasFinished = false
    var uploadProgress: ProgressBlock?
    var downloadProgress: ProgressBlock?
    var challenge: (@Sendable (NSURLConnection, URLAuthenticationChallenge) -> Void)?
    var redirect: (@Sendable (NSURLConnection, URLRequest, URLResponse?) -> URLRequest?)?
    var completions: [@Sendable () -> Void] = []
  }

  /// Called with the number of bytes since the last call, the number so far, and the expected total, or -1.
  public typealias ProgressBlock = @Sendable (UInt, Int64, Int64) -> Void

  /// Creates an operation that has not been started.
  public required init(request: URLRequest) {
    self.request = request
    let owner = Owner()
    core = HTTP.ConnectionOperation.sharedThread.map { thread in
      HTTP.ConnectionOperation(
        on: thread,
        .init {
          owner.operation?.connect()
        } cancelled: {
          owner.operation?.connectionWasCancelled()
        })
    }
    super.init()
    owner.operation = self
  }

  /// A weak reference to the operation for its core's actions, as the operation is retained from its start to its end.
  private final class Owner: @unchecked Sendable {
    // Sendable: the weak reference is set once, before the owner is shared, and reading it is atomic.
    weak var operation: AFURLConnectionOperation?
  }

  // MARK: Properties. Can be accessed from any thread.

  /// The modes in which the operation runs on its thread's loop; by default, the common modes.
  open var runLoopModes: Set<RunLoopCore.RunLoop.Mode> {
    get { Set(core?.runLoopModes ?? []) }
    set { core?.runLoopModes = Array(newValue) }
  }

  /// The response's status and headers, once they have arrived.
  open var response: URLResponse? { lock.withLock { state.response } }
  /// The error of the request, or a subclass's own.
  open var error: (any Error)? { lock.withLock { state.error } }
  /// The body, once it is complete; nil with an output stream.
  open var responseData: Data? { lock.withLock { state.hasFinished ? state.data : nil } }

  /// The encoding that the response specifies, or UTF-8 if it specifies none that Foundation supports.
  open var responseStringEncoding: String.Encoding { TextEncoding(response?.textEncodingName).encoding ?? .utf8 }

  /// The body as a string; nil if it cannot be decoded.
  ///
  /// Charsets that Foundation does not support are decoded by the system's iconv, unless a subclass overrides
  /// ``responseStringEncoding``.
  open var responseString: String? {
    guard let data = responseData else { return nil }
    let (named, encoding) = (TextEncoding(response?.textEncodingName), responseStringEncoding)
    return encoding == named.encoding ?? .utf8 ? named.text(data) : String(data: data, encoding: encoding)
  }

  open override var isAsynchronous: Bool { true }
  open override var isReady: Bool { (core?.phase ?? .ready) != .paused && super.isReady }
  open override var isExecuting: Bool { core?.phase == .executing }
  open override var isFinished: Bool { lock.withLock { state.hasFinished } }

  /// Whether the operation is paused.
  open func isPaused() -> Bool { core?.phase == .paused }

  // MARK: Lifecycle. Can be called from any thread.

  open override func start() {
    guard let core else { return finish(URLError(.cannotLoadFromNetwork)) }
    apply(.start, to: core)
  }

  /// Closes the connection and keeps the received data.
  open func pause() { if let core { apply(.pause, to: core) } }

  /// Continues the body where possible and otherwise starts over; starts an operation that was paused before its
  /// start.
  open func resume() { if let core { apply(.resume, to: core) } }

  open override func cancel() {
    guard !isFinished else { return }
    super.cancel()
    if let core { apply(.cancel, to: core) }
  }

  private func apply(_ event: ConnectionOperationState.Event, to core: HTTP.ConnectionOperation) {
    willChangeValue(forKey: "isExecuting")
    let (before, after) = core.apply(event, holding: self)
    didChangeValue(forKey: "isExecuting")
    guard before != after else { return }
    if before == .paused || after == .paused {
      willChangeValue(forKey: "isReady")
      didChangeValue(forKey: "isReady")
    }
    if before == .ready, after == .executing {
      NotificationCenter.default.post(name: .AFNetworkingOperationDidStart, object: self)
    }
  }

  // MARK: Used only on the network thread

  private func connect() -> HTTP.Connection? {
    let trust = securityPolicy.connectionTrust
    let made = NSURLConnection(request, self) { $0.trust = trust }
    guard let made else {
      finish(URLError(.badURL))
      return nil
    }
    lock.withLock { connection = made }
    outputStream?.open()
    return made.connection
  }

  private func connectionWasCancelled() {
    let url = request.url
    finish(URLError(.cancelled, userInfo: url.map { [NSURLErrorFailingURLErrorKey: $0] } ?? [:]))
  }

  /// Ends the operation; only the first call has an effect.
  private func finish(_ error: (any Error)?) {
    lock.lock()
    let (isFirst, released) = (!state.isEnding, connection)
    state.isEnding = true
    if isFirst, let error { state.error = error }
    connection = nil
    lock.unlock()
    guard isFirst else { return }
    outputStream?.close()
    withExtendedLifetime(released) {}
    willChangeValue(forKey: "isExecuting")
    willChangeValue(forKey: "isFinished")
    core?.connectionHasEnded()
    core?.apply(.end)
    lock.lock()
    state.hasFinished = true
    let completions = state.completions
    state.completions = []
    lock.unlock()
    didChangeValue(forKey: "isExecuting")
    didChangeValue(forKey: "isFinished")
    NotificationCenter.default.post(name: .AFNetworkingOperationDidFinish, object: self)
    for completion in completions { completion() }
  }

  /// Calls a block when the operation has finished, on the network thread, or immediately if it already has.
  func whenFinished(_ body: @escaping @Sendable () -> Void) {
    lock.lock()
    let hasFinished = state.hasFinished
    if !hasFinished { state.completions.append(body) }
    lock.unlock()
    if hasFinished { body() }
  }

  // MARK: Blocks, which are set before the start

  /// Sets a block to call on the network thread's loop as the request's body is sent.
  open func setUploadProgressBlock(_ block: ProgressBlock?) { lock.withLock { state.uploadProgress = block } }

  /// Sets a block to call on the network thread's loop as the response's body arrives, at most once per pass.
  open func setDownloadProgressBlock(_ block: ProgressBlock?) { lock.withLock { state.downloadProgress = block } }

  /// Sets a block that responds to the server's challenges.
  open func setWillSendRequestForAuthenticationChallengeBlock(
    _ block: (@Sendable (NSURLConnection, URLAuthenticationChallenge) -> Void)?
  ) { lock.withLock { state.challenge = block } }

  /// Sets a block that decides about redirects, like `connection(_:willSend:redirectResponse:)`.
  open func setRedirectResponseBlock(
    _ block: (@Sendable (NSURLConnection, URLRequest, URLResponse?) -> URLRequest?)?
  ) { lock.withLock { state.redirect = block } }

  /// Returns a new operation of the same class with the same request and blocks.
  ///
  /// The copy has no response, body and error, and neither ``outputStream``, which can be written only once, nor
  /// ``userInfo`` or `completionBlock`. Unlike in AFNetworking, it has the same ``credential``,
  /// ``shouldUseCredentialStorage``, ``securityPolicy`` and ``runLoopModes``.
  open func copy(with zone: NSZone?) -> Any {
    let copy = type(of: self).init(request: request)
    let content = content
    copy.lock.withLock {
      copy.state.uploadProgress = content.uploadProgress
      copy.state.downloadProgress = content.downloadProgress
      copy.state.challenge = content.challenge
      copy.state.redirect = content.redirect
    }
    copy.completionQueue = completionQueue
    copy.completionGroup = completionGroup
    copy.credential = credential
    copy.shouldUseCredentialStorage = shouldUseCredentialStorage
    copy.securityPolicy = securityPolicy
    copy.runLoopModes = runLoopModes
    return copy
  }

  // MARK: The connection's delegate, called on the network thread's loop

  /// All of the state at once, because returning a single block from `withLock` would wrap it in a thunk.
  private var content: Content { lock.withLock { state } }

  /// Returns ``shouldUseCredentialStorage``.
  open func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool { shouldUseCredentialStorage }

  /// Calls the block for challenges, or responds once with ``credential``.
  ///
  /// Without either, the proposed credential is used once. An override responds through the challenge's sender or calls
  /// `super`.
  open func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
    if let block = content.challenge {
      noteCall(of: ChallengeBlock(call: block))
      return block(connection, challenge)
    }
    if challenge.previousFailureCount == 0, let credential, request.isOfOrigin(of: challenge.protectionSpace) {
      challenge.sender?.use(credential, for: challenge)
    } else {
      challenge.sender?.performDefaultHandling(for: challenge)
    }
  }

  /// Returns the result of the block for redirects, or the request itself, which follows the redirect.
  open func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest? {
    guard let block = content.redirect else { return request }
    noteCall(of: RedirectBlock(call: block))
    return block(connection, request, response)
  }

  /// Returns the form's body from its beginning if it is a multipart form without streams, and otherwise nil.
  open func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
    (request.httpBodyStream as? AFMultipartBodyStream).flatMap { $0.isRepeatable ? $0.fresh() : nil }
  }

  /// Calls the block for upload progress.
  open func connection(
    _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
    totalBytesExpectedToWrite: Int
  ) {
    guard let block = content.uploadProgress else { return }
    noteCall(of: CalledProgressBlock(call: block))
    block(UInt(bytesWritten), Int64(totalBytesWritten), Int64(totalBytesExpectedToWrite))
  }

  /// Stores the response's status and headers, and discards everything received before.
  ///
  /// If part of an earlier body was written to ``outputStream``, which cannot be undone, the operation fails with
  /// `URLError.cannotWriteToFile`.
  open func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    lock.lock()
    let received = state.received
    state.response = response
    state.data = outputStream == nil ? Data() : nil
    state.received = 0
    lock.unlock()
    guard received > 0, outputStream != nil else { return }
    // The bytes already written cannot be taken back.
    fail(connection, URLError(.cannotWriteToFile))
  }

  /// Keeps the bytes or writes them to ``outputStream``, and calls the block for download progress.
  ///
  /// If writing fails, the operation fails with the stream's error.
  open func connection(_ connection: NSURLConnection, didReceive data: Data) {
    if let outputStream, !write(data, to: outputStream) {
      return fail(connection, outputStream.failure ?? URLError(.cannotWriteToFile))
    }
    lock.lock()
    state.received += Int64(data.count)
    if outputStream == nil { state.data?.append(data) }
    let (block, received, response) = (state.downloadProgress, state.received, state.response)
    lock.unlock()
    guard let block else { return }
    noteCall(of: CalledProgressBlock(call: block))
    block(UInt(data.count), received, response?.expectedContentLength ?? -1)
  }

  /// Finishes the operation; overrides have to call `super`.
  open func connectionDidFinishLoading(_ connection: NSURLConnection) { finish(nil) }

  /// Finishes the operation with an error; overrides have to call `super`.
  open func connection(_ connection: NSURLConnection, didFailWithError error: any Error) { finish(error) }

  private func fail(_ connection: NSURLConnection, _ error: any Error) {
    connection.cancel()
    finish(error)
  }

  private func write(_ data: Data, to stream: OutputStream) -> Bool {
    data.withUnsafeBytes { bytes in
      var rest = bytes.bindMemory(to: UInt8.self)
      while let start = rest.baseAddress, !rest.isEmpty {
        let count = stream.write(start, maxLength: rest.count)
        guard count > 0 else { return false }
        rest = UnsafeBufferPointer(rebasing: rest[count...])
      }
      return true
    }
  }
}

// These types give the program's blocks a name in the call-out records.

private struct CalledProgressBlock {
  let call: AFURLConnectionOperation.ProgressBlock
}

private struct ChallengeBlock {
  let call: @Sendable (NSURLConnection, URLAuthenticationChallenge) -> Void
}

private struct RedirectBlock {
  let call: @Sendable (NSURLConnection, URLRequest, URLResponse?) -> URLRequest?
}

extension URLRequest {
  /// Whether a server that requests a credential is at the origin of this request.
  fileprivate func isOfOrigin(of space: URLProtectionSpace) -> Bool {
    guard let url else { return false }
    let scheme = space.protocol == NSURLProtectionSpaceHTTPS ? "https" : "http"
    let host = space.host.contains(":") ? "[\(space.host)]" : space.host
    let origin = HTTP.Request(url.absoluteString).origin
    return origin != nil && origin == HTTP.Request("\(scheme)://\(host):\(space.port)/").origin
  }
}

extension Notification.Name {
  /// Posted when an operation, the notification's object, has been started.
  ///
  /// It is posted on the thread that starts the operation.
  public static let AFNetworkingOperationDidStart = Notification.Name("com.alamofire.networking.operation.start")
  /// Posted when an operation, the notification's object, has finished.
  ///
  /// It is posted on the network thread.
  public static let AFNetworkingOperationDidFinish = Notification.Name("com.alamofire.networking.operation.finish")
}
