// SPDX-License-Identifier: Apache-2.0

public import Dispatch
public import Foundation
public import FoundationNetworking
public import RunLoopCore
import RunLoopHTTP
public import RunLoopThreads

/// A request as an operation of Foundation's, on AFNetworking's own thread.
///
/// Its start, pause and cancellation hop to the thread named `AFNetworking`, on whose loop its connection is scheduled
/// in ``runLoopModes``; its delegate functions are called there. It can be used with queues, dependencies and
/// `maxConcurrentOperationCount`. It finishes exactly once; one that was cancelled before its start finishes when it is
/// started, as the queue does.
///
/// It is AFNetworking 2's class of this name. What it does otherwise: a body that was paused goes on only with the same
/// version of it and otherwise begins afresh; a paused operation that is cancelled finishes; progress is reported at
/// most once in a pass of the loop. There is no cache, and so no block for it.
open class AFURLConnectionOperation: Foundation.Operation, NSURLConnectionDataDelegate, NSCopying, @unchecked Sendable {
  // Sendable: the lock guards what changes; what the program sets, it sets before the start, as with every operation.

  /// The thread of all operations; nil if it could not be started.
  public class var networkRequestThread: RunLoopThreads.Thread? {
    HTTP.ConnectionOperation.sharedThread?.thread
  }

  /// What is asked for.
  public let request: URLRequest
  /// Who answers a server that asks for a credential; nil: the shared storage, if it is used.
  ///
  /// It is for the scheme, host and port of ``request``. A server at another origin, to which a redirect has led, does
  /// not get it: unlike AFNetworking, which answers whoever asks.
  open var credential: URLCredential?
  /// Whether credentials of `URLCredentialStorage` are used.
  open var shouldUseCredentialStorage = true
  /// Whom the operation trusts.
  open var securityPolicy = AFSecurityPolicy.default
  /// Anything of the program's.
  open var userInfo: [AnyHashable: Any] = [:]
  /// Where the body goes, instead of the data of the answer; the operation opens and closes it.
  open var outputStream: OutputStream?
  /// The queue of completion blocks; nil: the main queue.
  open var completionQueue: DispatchQueue?
  /// The group that completion blocks are in; nil: none.
  open var completionGroup: DispatchGroup?

  private let core: HTTP.ConnectionOperation?
  private let lock = Lock()
  // Guarded by the lock.
  private var state = Content()
  private var connection: NSURLConnection?

  /// What has come of it, and who wants to know.
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

  /// How many bytes came or went since the last call, how many in all, and how many there are, or -1.
  public typealias ProgressBlock = @Sendable (UInt, Int64, Int64) -> Void

  /// Makes an operation that has not been started.
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

  /// The operation, as its core's actions have it: it is held by whoever started it, until it has finished.
  private final class Owner: @unchecked Sendable {
    // Sendable: set before anybody else has it, and weak.
    weak var operation: AFURLConnectionOperation?
  }

  // What it is. Any thread.

  /// The modes of the thread's loop in which it hops and is called, the common ones unless said otherwise.
  open var runLoopModes: Set<RunLoopCore.RunLoop.Mode> {
    get { Set(core?.runLoopModes ?? []) }
    set { core?.runLoopModes = Array(newValue) }
  }

  /// The head of the answer, once that has arrived.
  open var response: URLResponse? { lock.withLock { state.response } }
  /// Why there is no answer; a subclass may have other reasons.
  open var error: (any Error)? { lock.withLock { state.error } }
  /// The body, once it is complete; nil with an output stream.
  open var responseData: Data? { lock.withLock { state.hasFinished ? state.data : nil } }

  /// The encoding of the body that the answer names, UTF-8 if it names none that Foundation has.
  open var responseStringEncoding: String.Encoding { TextEncoding(response?.textEncodingName).encoding ?? .utf8 }

  /// The body as a text; nil if it is none.
  ///
  /// Charsets that Foundation does not have are those of the system's table (iconv), unless a subclass overrides
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

  /// Whether it is paused.
  open func isPaused() -> Bool { core?.phase == .paused }

  // Its life. Any thread.

  open override func start() {
    guard let core else { return finish(URLError(.cannotLoadFromNetwork)) }
    apply(.start, to: core)
  }

  /// Ends the connection and keeps what has arrived.
  open func pause() { if let core { apply(.pause, to: core) } }

  /// Goes on with the body where that is possible, otherwise afresh; one that was paused before its start is started.
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

  // The network thread.

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

  /// It has ended; called once.
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

  /// Calls a block when it has finished, on the network thread, or here if it has.
  func whenFinished(_ body: @escaping @Sendable () -> Void) {
    lock.lock()
    let hasFinished = state.hasFinished
    if !hasFinished { state.completions.append(body) }
    lock.unlock()
    if hasFinished { body() }
  }

  // What it asks and reports; set before the start.

  /// Calls a block as the body of the request is sent, on the network thread's loop.
  open func setUploadProgressBlock(_ block: ProgressBlock?) { lock.withLock { state.uploadProgress = block } }

  /// Calls a block as the body of the answer arrives, on the network thread's loop, at most once in a pass.
  open func setDownloadProgressBlock(_ block: ProgressBlock?) { lock.withLock { state.downloadProgress = block } }

  /// Lets a block answer the server's challenges.
  open func setWillSendRequestForAuthenticationChallengeBlock(
    _ block: (@Sendable (NSURLConnection, URLAuthenticationChallenge) -> Void)?
  ) { lock.withLock { state.challenge = block } }

  /// Lets a block decide on redirects, as `connection(_:willSend:redirectResponse:)` does.
  open func setRedirectResponseBlock(
    _ block: (@Sendable (NSURLConnection, URLRequest, URLResponse?) -> URLRequest?)?
  ) { lock.withLock { state.redirect = block } }

  /// Returns an operation of the same class with the same request and blocks, which has not been started.
  ///
  /// The response, the body and the error are not copied, and neither are ``outputStream``, which can be
  /// written once, ``userInfo`` and `completionBlock`. Unlike AFNetworking's, the copy has the same ``credential``,
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

  // The connection's delegate: the network thread's loop.

  /// All of it, as one of the blocks by itself would be wrapped on its way here.
  private var content: Content { lock.withLock { state } }

  /// Returns ``shouldUseCredentialStorage``.
  open func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool { shouldUseCredentialStorage }

  /// Lets the block for challenges answer, or answers with ``credential`` once.
  ///
  /// Without either, the proposed credential is used once. An override answers the challenge's sender itself, or calls
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

  /// Returns what the block for redirects returns; without one, the request, so that the redirect is followed.
  open func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest? {
    guard let block = content.redirect else { return request }
    noteCall(of: RedirectBlock(call: block))
    return block(connection, request, response)
  }

  /// Returns the form's body from its beginning, if the body is that of a form with several parts and without streams;
  /// otherwise nil.
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

  /// Notes the head of the answer, and forgets what arrived before.
  ///
  /// If a part of an earlier body was written to ``outputStream``, the operation fails with
  /// `URLError.cannotWriteToFile`: it cannot be taken back.
  open func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    lock.lock()
    let received = state.received
    state.response = response
    state.data = outputStream == nil ? Data() : nil
    state.received = 0
    lock.unlock()
    guard received > 0, outputStream != nil else { return }
    // What was written cannot be taken back.
    fail(connection, URLError(.cannotWriteToFile))
  }

  /// Keeps the bytes or writes them to ``outputStream``, and calls the block for download progress.
  ///
  /// If the stream cannot take them, the operation fails with the stream's error.
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

  /// Finishes the operation; an override calls `super`.
  open func connectionDidFinishLoading(_ connection: NSURLConnection) { finish(nil) }

  /// Finishes the operation with an error; an override calls `super`.
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

// What names the program's blocks in records.

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
  /// Whether a server that asks for a credential is the one that this request is for.
  fileprivate func isOfOrigin(of space: URLProtectionSpace) -> Bool {
    guard let url else { return false }
    let scheme = space.protocol == NSURLProtectionSpaceHTTPS ? "https" : "http"
    let host = space.host.contains(":") ? "[\(space.host)]" : space.host
    let origin = HTTP.Request(url.absoluteString).origin
    return origin != nil && origin == HTTP.Request("\(scheme)://\(host):\(space.port)/").origin
  }
}

extension Notification.Name {
  /// An operation, the notification's object, has been started.
  ///
  /// Posted by the thread that starts it.
  public static let AFNetworkingOperationDidStart = Notification.Name("com.alamofire.networking.operation.start")
  /// An operation, the notification's object, has finished.
  ///
  /// Posted by the network thread.
  public static let AFNetworkingOperationDidFinish = Notification.Name("com.alamofire.networking.operation.finish")
}
