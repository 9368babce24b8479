// SPDX-License-Identifier: Apache-2.0

extension HTTPTestServer {
  /// A scripted response, and the action taken on the connection afterwards.
  public struct Response: Sendable {
    /// The part of a response that is sent.
    public enum Part: Hashable, Sendable {
      /// The whole response.
      case all
      /// Nothing.
      case nothing
      /// The status line and the headers.
      case head
      /// The status line, the headers and this many bytes of the body.
      case body(Int)
    }

    /// The action taken on the connection after that part has been sent.
    public enum Ending: Hashable, Sendable {
      /// The connection is kept open, silently if the response is incomplete.
      case keep
      /// The end is announced, with `Connection: close` or GOAWAY, and the connection is then closed.
      ///
      /// With ``Part/nothing``, the GOAWAY marks this request as unprocessed, and HTTP/1 closes without a response.
      case goAway
      /// The connection is closed without an announcement.
      case close
      /// The server stops writing without an announcement, and ignores any further input.
      case halfClose
      /// The connection is reset, as if the server had been killed.
      case reset
      /// Nothing is sent, and the stream is rejected as unprocessed (REFUSED_STREAM); HTTP/1 closes the connection.
      case reject
    }

    /// The status code.
    public var status: Int
    /// The headers; `Content-Length` is added unless they have it, or `Transfer-Encoding`.
    public var headers: KeyValuePairs<String, String>
    /// The body, which is not sent for HEAD and for statuses without a body.
    public var body: [UInt8]
    /// The delay from the request to the headers, by the loop's clock.
    public var delay: Duration
    /// The delay before each byte of the body, to simulate a slow server; nil, the default, sends the body at once.
    public var interval: Duration?
    /// The part of the response that is sent.
    public var part: Part
    /// The action taken on the connection after the response.
    public var ending: Ending

    /// Creates a response.
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

    /// The delay before each byte; nil for none.
    var pace: Duration? { interval.flatMap { $0 > .zero ? $0 : nil } }

    /// Returns the number of bytes of the body to send for a request method.
    func bodyCount(for method: String) -> Int {
      guard method != "HEAD", status >= 200, status != 204, status != 304 else { return 0 }
      switch part {
      case .all: return body.count
      case .nothing, .head: return 0
      case .body(let count): return min(max(0, count), body.count)
      }
    }

    /// The headers, including the added length.
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
