// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// An event that a server has sent in a body of the type `text/event-stream`.
  public struct ServerSentEvent: Sendable, Hashable {
    /// The event's type: `message` unless the server names another.
    public var type: String
    /// The data; several lines are joined by line feeds.
    public var data: String
    /// The last identifier that the server has sent, which may be that of an earlier event.
    ///
    /// A request for the following events sends it in `Last-Event-ID`.
    public var id: String
    /// How long to wait before asking again when the body ends, if the server has sent this with this event or before.
    public var retry: Duration?
  }

  /// The events of a body, as they arrive (HTML, section 9.2).
  ///
  /// An event whose end is missing when the body ends is dropped. The sequence does not ask again by itself.
  public struct ServerSentEvents: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let body: BodySequence
    let limit: Int

    /// Takes the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private let body: BodySequence
      private var lines: LineSequence.AsyncIterator
      private var parser: ServerSentEventParser

      init(_ body: BodySequence, _ limit: Int) {
        self.body = body
        lines = LineSequence.AsyncIterator(body, limit)
        parser = ServerSentEventParser(limit: limit)
      }

      /// The next event; nil at the end of the body.
      ///
      /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/tooLarge`` if an event exceeds the limit, and then the
      ///   request is cancelled.
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

    /// Makes an iterator; the chunks of the body go to the iterator that asks first.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body, limit) }
  }
}

extension HTTP.BodySequence {
  /// The events that a server sends, each of at most 1 MiB.
  public var serverSentEvents: HTTP.ServerSentEvents { serverSentEvents(upTo: 1 << 20) }

  /// The events that a server sends.
  ///
  /// - Parameter limit: How many bytes the data of an event, and each line, may have.
  public func serverSentEvents(upTo limit: Int) -> HTTP.ServerSentEvents {
    HTTP.ServerSentEvents(body: self, limit: Swift.max(0, limit))
  }
}

/// Makes events of lines.
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

  /// - Parameter limit: How many bytes the data of an event may have.
  init(limit: Int) { self.limit = limit }

  /// Takes a line without its end; an empty one ends an event.
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
      // In place: a text that is made anew for each line costs the square of its length.
      if data == nil { data = "" } else { data?.append("\n") }
      data?.append(contentsOf: Substring(value))
      if (data?.utf8.count ?? 0) > limit { return .tooLarge }
    case "event": type = String(value)
    case "id": if !value.contains("\0") { id = String(value) }
    case "retry":
      if !value.isEmpty, value.allSatisfy({ ("0"..."9").contains($0) }), let time = Int64(String(value)) {
        retry = .milliseconds(time)
      }
    // Comments, and fields that are not known.
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
