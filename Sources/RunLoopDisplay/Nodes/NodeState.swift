// SPDX-License-Identifier: Apache-2.0

/// The state machine of a node's drawings, whose methods return the action to perform.
///
/// Each mark creates a new version. At most one drawing is in progress. A finished drawing is shown if it has the
/// node's size and is newer than what is shown, even if the node has been marked again meanwhile. A node that is
/// marked faster than it can be drawn therefore skips versions, but never shows an older one after a newer one. Then
/// the newest version is drawn.
struct NodeState: Hashable, Sendable {
  /// The number that identifies a drawing.
  struct Ticket: Hashable, Sendable {
    fileprivate let number: Int
  }

  /// The work that an update has to do for the node.
  enum Demand: Hashable, Sendable {
    /// There is nothing to draw, or a drawing is in progress.
    case nothing
    /// The visible contents are out of date.
    case draw
    /// There are no contents, or they have a different size.
    case drawAtOnce
  }

  /// The action for a finished drawing.
  enum Finish: Hashable, Sendable {
    case apply, discard
  }

  /// The drawing in progress, as it was when it began.
  struct Drawing: Hashable, Sendable {
    let ticket: Ticket
    var version: Int
    let size: Size
  }

  /// The current version of the content.
  private(set) var newest = 1
  /// The version that is shown, or 0.
  private(set) var shown = 0
  /// The version whose drawing failed and which is not tried again, or 0.
  private(set) var failed = 0
  /// The current size of the node.
  private(set) var size = Size.zero
  private(set) var shownSize = Size.zero
  /// Whether the node's view is in a window.
  private(set) var isInWindow = false
  private(set) var isHidden = false
  private(set) var underWay: Drawing?
  private var lastNumber = 0

  /// Whether the current version is shown in the current size.
  var isUpToDate: Bool { shown == newest && shownSize == size }

  var demand: Demand {
    guard isInWindow, !isHidden, !size.isEmpty, !isUpToDate, failed != newest, underWay == nil else { return .nothing }
    return shownSize == size ? .draw : .drawAtOnce
  }
}

// Events of the node. A returned drawing must be cancelled.
extension NodeState {
  /// The content has changed.
  mutating func mark() { newest += 1 }

  /// The node was resized.
  mutating func resize(to size: Size) -> Ticket? {
    guard size != self.size else { return nil }
    self.size = size
    failed = 0
    return abandon()
  }

  /// The node shows different content, of which a drawing with the given size may already exist.
  mutating func reuse(_ drawnSize: Size?) -> Ticket? {
    newest += 1
    shown = drawnSize == nil ? 0 : newest
    shownSize = drawnSize ?? .zero
    return abandon()
  }

  mutating func setHidden(_ isHidden: Bool) -> Ticket? {
    self.isHidden = isHidden
    return isHidden ? abandon() : nil
  }

  mutating func enterWindow() { isInWindow = true }

  mutating func leaveWindow() -> Ticket? {
    isInWindow = false
    return abandon()
  }

  private mutating func abandon() -> Ticket? { underWay.take()?.ticket }
}

// Events of a drawing.
extension NodeState {
  /// A drawing begins, or is handed over.
  ///
  /// - Precondition: The node demands a drawing.
  mutating func begin() -> Ticket {
    precondition(demand != .nothing, "a drawing was begun in \(self)")
    lastNumber += 1
    let ticket = Ticket(number: lastNumber)
    underWay = Drawing(ticket: ticket, version: newest, size: size)
    return ticket
  }

  /// A worker begins a drawing, which uses the newest version; returns nil if it is no longer needed.
  mutating func start(_ ticket: Ticket) -> Drawing? {
    guard underWay?.ticket == ticket else { return nil }
    underWay?.version = newest
    return underWay
  }

  mutating func finish(_ ticket: Ticket) -> Finish {
    guard let drawing = underWay, drawing.ticket == ticket else { return .discard }
    underWay = nil
    guard drawing.size == size, drawing.version > shown || shownSize != size else { return .discard }
    shown = drawing.version
    shownSize = drawing.size
    return .apply
  }

  /// A drawing ended without a result, and its version is not drawn again.
  mutating func fail(_ ticket: Ticket) {
    guard let drawing = underWay.take(if: { $0.ticket == ticket }) else { return }
    failed = drawing.version
  }

  /// A drawing ended without a result, and is tried again.
  mutating func retry(_ ticket: Ticket) { _ = underWay.take { $0.ticket == ticket } }
}

extension Optional {
  /// Takes the value if it satisfies a condition.
  fileprivate mutating func take(if condition: (Wrapped) -> Bool) -> Wrapped? {
    guard let value = self, condition(value) else { return nil }
    self = nil
    return value
  }
}
