// SPDX-License-Identifier: Apache-2.0

/// A queue of events that a connection has to report, as a value.
struct ConnectionMail {
  enum Event {
    /// A response that redirects to the request.
    case redirect(HTTP.Request, HTTP.Response)
    case challenge(Challenge, WebAddress, HTTP.Response)
    case response(HTTP.Response)
    case data([UInt8])
    case sent(Int64, of: Int64?)
    case end(HTTP.Error?)
  }

  /// The sizes in bytes at which receiving stops and continues.
  static let (highWater, lowWater) = (512 * 1024, 128 * 1024)

  private var events: [Event] = []
  private var first = 0
  private var backlog = Backlog(highWater: highWater, lowWater: lowWater)

  var count: Int { events.count - first }
  var isEmpty: Bool { count == 0 }
  var byteCount: Int { backlog.count }
  var isFull: Bool { backlog.isFull }
  /// Whether the end of the connection is queued, which no event follows.
  var hasEnd: Bool { if !isEmpty, case .end = events[events.count - 1] { true } else { false } }

  /// Appends an event, or merges it with the last one if both are of the same kind, so that one pass reports them
  /// together.
  ///
  /// - Complexity: O(n), where n is the length of the data.
  mutating func append(_ event: Event) {
    switch event {
    case .data(let bytes):
      backlog.add(bytes.count)
      guard !isEmpty, case .data(var waiting) = events[events.count - 1] else { break }
      // Removed from the array while it is modified, which avoids a copy.
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

  mutating func prepend(_ event: Event) {
    if first > 0 { first -= 1 } else { events.insert(event, at: 0) }
    events[first] = event
  }

  /// Removes the first event, and returns it and whether the connection may receive again.
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
