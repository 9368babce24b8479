// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The progress of a request.
  public struct Progress: Sendable, Hashable {
    /// How many bytes of the request's body were sent, in the last exchange.
    public var sent: Int64 = 0
    /// How many bytes the request's body has, if that is known.
    public var totalToSend: Int64?
    /// How many decoded bytes of the answer's body have arrived.
    public var received: Int64 = 0
    /// How many bytes the answer's body has, if the server reports it.
    public var total: Int64?

    /// Makes the progress of a request that has sent and received nothing.
    public init() {}

    init(sent: Int64, totalToSend: Int64?, received: Int64, total: Int64?) {
      (self.sent, self.totalToSend, self.received, self.total) = (sent, totalToSend, received, total)
    }
  }

  /// Takes the body of an answer, as an alternative to memory and files.
  ///
  /// Its functions are called on the loader's thread, one at a time, and must return soon. They may call the
  /// operation's functions, and must not run the loop.
  public protocol Sink: AnyObject, Sendable {
    /// The answer begins.
    ///
    /// - Parameters:
    ///   - response: Its head.
    ///   - offset: Where its body goes on in what was taken before. Zero means that it begins afresh: what was taken
    ///     before is to be forgotten.
    func begin(_ response: Response, at offset: Int64) throws
    /// Takes decoded bytes, which are valid until it returns.
    func write(_ bytes: UnsafeRawBufferPointer) throws
    /// The body is complete.
    func end() throws
  }

  /// Where the body of an operation's answer goes.
  public enum Output: Sendable {
    /// Into memory: the operation's result contains it.
    case memory
    /// Nowhere; the bytes are only counted.
    case discard
    /// Into a file, as ``HTTP/Client/download(_:to:resuming:)`` does.
    case file(String)
    /// To an object of the program.
    case sink(any Sink)
  }
}
