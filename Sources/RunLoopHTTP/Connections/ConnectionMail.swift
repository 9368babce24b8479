// SPDX-License-Identifier: Apache-2.0

/// What a connection has to report, in order; a value.
struct ConnectionMail {
  enum Event {
    /// An answer that leads elsewhere.
    case redirect(HTTP.Request, HTTP.Response)
    case challenge(Challenge, WebAddress, HTTP.Response)
    case response(HTTP.Response)
    case data([UInt8])
    case sent(Int64, of: Int64?)
    case end(HTTP.Error?)
  }

  /// From how many bytes on nothing more is received, and at how many it goes on.
  static let (highWater, lowWater) = (512 * 1024, 128 * 1024)

  private var events: [Event] = []
  private var first = 0
  private var backlog = Backlog(highWater: highWater, lowWater: lowWater)

  var count: Int { events.count - first }
  var isEmpty: Bool { count == 0 }
  /// How many bytes of a body wait.
  var byteCount: Int { backlog.count }
  /// Whether no more is taken.
  var isFull: Bool { backlog.isFull }
  /// Whether the end is among the events; nothing follows it.
  var hasEnd: Bool { if !isEmpty, case .end = events[events.count - 1] { true } else { false } }

  /// Adds an event; what follows one of its kind is added to that, so that a pass reports it at once.
  ///
  /// - Complexity: O(1), and the length of the data.
  mutating func append(_ event: Event) {
    switch event {
    case .data(let bytes):
      backlog.add(bytes.count)
      guard !isEmpty, case .data(var waiting) = events[events.count - 1] else { break }
      // Taken out, so that it is not copied.
      events[events.count - 1] = .end(nil)
      waiting += bytes
      events[events.count - 1] = .data(waiting)
      return
    case .sent:
      guard !isEmpty, case .sent = events[events.count - 1] else { break }
      events[events.count - 1] = event
      return
    case .redirect, .challenge, .response, .end: break
    }
    events.append(event)
  }

  /// Puts an event before all others.
  mutating func prepend(_ event: Event) {
    if first > 0 { first -= 1 } else { events.insert(event, at: 0) }
    events[first] = event
  }

  /// Takes the first event, and whether the connection may receive again.
  mutating func next() -> (event: Event, hasRoom: Bool)? {
    guard !isEmpty else { return nil }
    let event = events[first]
    events[first] = .end(nil)
    first += 1
    if isEmpty {
      events.removeAll(keepingCapacity: true)
      first = 0
    }
    guard case .data(let bytes) = event else { return (event, false) }
    return (event, backlog.remove(bytes.count))
  }
}
