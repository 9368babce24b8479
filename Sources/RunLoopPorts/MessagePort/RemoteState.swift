import RunLoopCore

/// What a remote port knows of its messages.
///
/// A value, guarded by the port's lock.
struct RemoteState {
  /// Why the port is invalid; nil: it is not.
  var end: MessagePortError?
  var lastToken: UInt64 = 0
  var pending: [UInt64: ReplyWaiter] = [:]
  var unconfirmed = UnconfirmedMessages()
  /// Whether messages were reported when the port ended.
  var hasLostMessages = false
  /// The refused messages that are to be reported, and whether a thread is reporting one.
  var refused: [MessagePort.Undelivered] = []
  var isReporting = false
  /// Whether a thread reads the socket; there is one at a time.
  var isReading = false
  /// How many threads wait for the reading thread.
  var followers = 0
  var statistics = MessagePort.Remote.Statistics()
  var places = MessagePortPlaces()
  var observers = InvalidationList<MessagePort.Remote>()

  /// Takes a message in that is about to be sent, and gives its token; replies may come before the call returns.
  mutating func register(id: Int32, _ waiter: ReplyWaiter?) -> UInt64 {
    lastToken += 1
    if let waiter {
      pending[lastToken] = waiter
      waiter.token = lastToken
    } else {
      unconfirmed.append(token: lastToken, id: id)
    }
    return lastToken
  }

  /// Takes the last message out again, which was not sent.
  mutating func unregister(_ token: UInt64, _ waiter: ReplyWaiter?) {
    lastToken -= 1
    if waiter != nil { pending[token] = nil } else { unconfirmed.removeLast(token) }
  }
}

/// The one-way messages that the receiver has not confirmed, in order.
struct UnconfirmedMessages {
  typealias Entry = (token: UInt64, id: Int32)

  /// How many there may be: a sender waits for the receiver then.
  static let limit = 1024

  private var entries: [Entry] = []
  private var first = 0

  var count: Int { entries.count - first }

  mutating func append(token: UInt64, id: Int32) { entries.append((token, id)) }

  /// Takes the last out, if it is this one.
  mutating func removeLast(_ token: UInt64) {
    if count > 0, entries[entries.count - 1].token == token { entries.removeLast() }
  }

  /// Takes all out up to a token, and gives their number.
  ///
  /// O(n) in what is taken out, amortised.
  mutating func confirm(upTo token: UInt64) -> Int {
    let before = first
    while first < entries.count, entries[first].token <= token { first += 1 }
    let confirmed = first - before
    if first == entries.count {
      entries.removeAll(keepingCapacity: true)
      first = 0
    } else if first >= Self.limit {
      entries.removeFirst(first)
      first = 0
    }
    return confirmed
  }

  /// Takes one out; nil if it is not here.
  ///
  /// O(n).
  mutating func remove(_ token: UInt64) -> Entry? {
    guard let index = entries[first...].firstIndex(where: { $0.token == token }) else { return nil }
    return entries.remove(at: index)
  }

  /// Takes all out.
  mutating func removeAll() -> [Entry] {
    defer {
      entries = []
      first = 0
    }
    return Array(entries[first...])
  }
}

/// Somebody who waits for a reply.
final class ReplyWaiter: @unchecked Sendable {
  // Sendable: the variables are guarded by the port's lock.
  typealias Outcome = Result<MessagePort.Reply?, MessagePortError>

  /// The request's; 0: it was not sent yet.
  var token: UInt64 = 0
  var outcome: Outcome?
  /// Tells whoever waits that there is an outcome; nil for a thread that blocks, which is told by the port's word.
  var wake: (@Sendable (Outcome) -> Void)?
}
