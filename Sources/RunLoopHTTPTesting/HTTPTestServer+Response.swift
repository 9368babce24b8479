// SPDX-License-Identifier: Apache-2.0

extension HTTPTestServer {
  /// A response, and how the connection fares with it.
  public struct Response: Sendable {
    /// How much of a response is sent.
    public enum Part: Hashable, Sendable {
      /// The whole response.
      case all
      /// Nothing.
      case nothing
      /// The status line and the headers.
      case head
      /// The head, and this many bytes of the body.
      case body(Int)
    }

    /// What becomes of the connection when that part was sent.
    public enum Ending: Hashable, Sendable {
      /// It is kept. After less than the whole response, the server keeps silent.
      case keep
      /// The end is announced, with `Connection: close` or GOAWAY, and then follows.
      ///
      /// With ``Part/nothing``, the GOAWAY says that this request was not processed, and HTTP/1 is closed without a
      /// response.
      case goAway
      /// The connection is closed without an announcement.
      case close
      /// The server stops writing without an announcement, and ignores what it still receives.
      case halfClose
      /// The connection is reset, as by a server that was killed.
      case reset
      /// Nothing is sent, and the stream of HTTP/2 is rejected as unprocessed (REFUSED_STREAM); HTTP/1 is closed.
      case reject
    }

    /// The status.
    public var status: Int
    /// The headers, to which a length is added unless they have one, or a coding of the transfer.
    public var headers: KeyValuePairs<String, String>
    /// The body, which is not sent for HEAD and for statuses that have none.
    public var body: [UInt8]
    /// The time from the request to the head, by the loop's clock.
    public var delay: Duration
    /// The time before each byte of the body, for a slow server; with nil, the body is sent at once.
    public var interval: Duration?
    /// How much of it is sent.
    public var part: Part
    /// What becomes of the connection then.
    public var ending: Ending

    /// Makes a response.
    public init(
      _ body: String = "", status: Int = 200, headers: KeyValuePairs<String, String> = [:], delay: Duration = .zero,
      part: Part = .all, ending: Ending = .keep
    ) {
      self.body = Array(body.utf8)
      self.status = status
      self.headers = headers
      self.delay = delay
      self.part = part
      self.ending = ending
    }

    /// The time before each byte; nil: none.
    var pace: Duration? { interval.flatMap { $0 > .zero ? $0 : nil } }

    /// How many bytes of the body are sent in response to a method.
    func bodyCount(for method: String) -> Int {
      guard method != "HEAD", status >= 200, status != 204, status != 304 else { return 0 }
      switch part {
      case .all: return body.count
      case .nothing, .head: return 0
      case .body(let count): return min(max(0, count), body.count)
      }
    }

    /// The headers with the length that is added.
    var allHeaders: [(name: String, value: String)] {
      var headers = headers.map { (name: $0.key, value: $0.value) }
      let names = headers.map { $0.name.lowercased() }
      if status >= 200, status != 204, !names.contains("content-length"), !names.contains("transfer-encoding") {
        headers.append(("Content-Length", "\(body.count)"))
      }
      return headers
    }
  }
}
