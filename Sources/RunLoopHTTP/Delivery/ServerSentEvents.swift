// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// An event from a response body of type `text/event-stream`.
  public struct ServerSentEvent: Sendable, Hashable {
    /// The event type; `message` unless the server specifies another.
    public var type: String
    /// The data, in which multiple lines are joined with line feeds.
    public var data: String
    /// The last event ID sent by the server, possibly with an earlier event.
    ///
    /// To continue after this event, send it in the `Last-Event-ID` header of the next request.
    public var id: String
    /// The reconnection delay that the server sent last, with this event or an earlier one; `nil` if it sent none.
    public var retry: Duration?
  }

  /// The server-sent events of a body as they arrive (HTML, section 9.2).
  ///
  /// An event that is incomplete at the end of the body is dropped. The sequence does not reconnect by itself.
  public struct ServerSentEvents: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let body: BodySequence
    let limit: Int

    /// The iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private let body: BodySequence
      private var lines: LineSequence.AsyncIterator
      private var parser: ServerSentEventParser

      init(_ body: BodySequence, _ limit: Int) {
        self.body = body
        lines = LineSequence.AsyncIterator(body, limit)
        parser = ServerSentEventParser(limit: limit)
      }

      /// Returns the next event, or nil at the end of the body.
      ///
      /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/tooLarge`` if an event exceeds the limit, in which case
      ///   the request is cancelled.
      public mutating func next() async throws -> ServerSentEvent? {
        while let line = try await lines.next() {
          switch parser.take(line) {
          case .more: break
          case .event(let event): return event
          case .tooLarge: throw body.owner.tooLarge("an event has more than \(parser.limit) bytes")
          }
        }
        return nil
      }
    }

    /// Creates an iterator; if there are several, each chunk of the body is delivered to only one of them.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body, limit) }
  }
}

extension HTTP.BodySequence {
  /// The server-sent events of the body, of at most 1 MiB each.
  public var serverSentEvents: HTTP.ServerSentEvents { serverSentEvents(upTo: 1 << 20) }

  /// Returns the server-sent events of the body.
  ///
  /// - Parameter limit: The maximum size in bytes of an event's data, and of each line.
  public func serverSentEvents(upTo limit: Int) -> HTTP.ServerSentEvents {
    HTTP.ServerSentEvents(body: self, limit: Swift.max(0, limit))
  }
}

struct ServerSentEventParser {
  enum Step: Equatable {
    case more
    case event(HTTP.ServerSentEvent)
    case tooLarge
  }

  let limit: Int
  private var type = ""
  private var data: String?
  private var id = ""
  private var retry: Duration?
  private var isFirst = true

  /// - Parameter limit: The maximum size in bytes of an event's data.
  init(limit: Int) { self.limit = limit }

  /// Parses a line without its line ending, where an empty line completes an event.
  mutating func take(_ line: String) -> Step {
    var line = line[...]
    if isFirst, line.unicodeScalars.first == "\u{feff}" { line = Substring(line.unicodeScalars.dropFirst()) }
    isFirst = false
    guard !line.isEmpty else { return dispatch() }
    let scalars = line.unicodeScalars
    let colon = scalars.firstIndex(of: ":") ?? scalars.endIndex
    var value = scalars[colon...].dropFirst()
    if value.first == " " { value = value.dropFirst() }
    switch String(scalars[..<colon]) {
    case "data":
      // Appended in place, because a new string for each line would take quadratic time.
      if data == nil { data = "" } else { data?.append("\n") }
      data?.append(contentsOf: Substring(value))
      if (data?.utf8.count ?? 0) > limit { return .tooLarge }
    case "event": type = String(value)
    case "id": if !value.contains("\0") { id = String(value) }
    case "retry":
      if !value.isEmpty, value.allSatisfy({ ("0"..."9").contains($0) }), let time = Int64(String(value)) {
        retry = .milliseconds(time)
      }
    // Comments and unknown fields are ignored.
    default: break
    }
    return .more
  }

  private mutating func dispatch() -> Step {
    defer {
      type = ""
      data = nil
    }
    guard let data else { return .more }
    return .event(
      HTTP.ServerSentEvent(type: type.isEmpty ? "message" : type, data: data, id: id, retry: retry))
  }
}
