// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The progress of a request.
  public struct Progress: Sendable, Hashable {
    /// The number of bytes of the request's body sent in the most recent attempt; the default is 0.
    public var sent: Int64 = 0
    /// The size of the request's body in bytes; nil, the default, means unknown.
    public var totalToSend: Int64?
    /// The number of decoded bytes of the response's body that have arrived; the default is 0.
    public var received: Int64 = 0
    /// The size of the response's body in bytes; nil, the default, means that the server has not reported it.
    public var total: Int64?

    /// Creates the progress of a request that has not sent or received anything.
    public init() {}

    init(sent: Int64, totalToSend: Int64?, received: Int64, total: Int64?) {
      (self.sent, self.totalToSend, self.received, self.total) = (sent, totalToSend, received, total)
    }
  }

  /// A destination for the body of a response, as an alternative to memory and files.
  ///
  /// The methods are called on the loader's thread, one at a time, and must not block. They may call the operation's
  /// functions but must not run the loop.
  public protocol Sink: AnyObject, Sendable {
    /// Called when a response begins.
    ///
    /// - Parameters:
    ///   - response: The response's status and headers.
    ///   - offset: The offset at which the body continues the bytes written before. Zero means that the body starts
    ///     over and that the earlier bytes have to be discarded.
    func begin(_ response: Response, at offset: Int64) throws
    /// Writes decoded bytes, which are valid only during the call.
    func write(_ bytes: UnsafeRawBufferPointer) throws
    /// Called when the body is complete.
    func end() throws
  }

  /// The destination of the response's body.
  public enum Output: Sendable {
    /// Memory: the operation's result contains the body.
    case memory
    /// No destination: the bytes are only counted.
    case discard
    /// A file, as with ``HTTP/Client/download(_:to:resuming:)``.
    case file(String)
    /// An object of the program.
    case sink(any Sink)
  }
}
