// SPDX-License-Identifier: Apache-2.0

/// What a node shows and what is drawn for it, as a value: each event is a function that changes it and says what is to
/// be done.
///
/// Each mark makes a new version of what is to be seen. At most one drawing is under way. When it is finished it is
/// shown if it has the node's size and is newer than what is shown, even if the node has been marked again meanwhile: a
/// node that is marked faster than it can be drawn shows one version after the other, not all of them, and never an
/// older one after a newer. Then the newest version is drawn.
struct NodeState: Hashable, Sendable {
  /// A drawing, by its number.
  struct Ticket: Hashable, Sendable {
    fileprivate let number: Int
  }

  /// What an update has to do for the node.
  enum Demand: Hashable, Sendable {
    /// There is nothing to draw, or a drawing is under way.
    case nothing
    /// Something is seen that is out of date.
    case draw
    /// Nothing is seen, or what had another size.
    case drawAtOnce
  }

  /// What is to be done with a drawing that was finished.
  enum Finish: Hashable, Sendable {
    case apply, discard
  }

  /// What is drawn, as it was when the drawing began.
  struct Drawing: Hashable, Sendable {
    let ticket: Ticket
    var version: Int
    let size: Size
  }

  /// The version that is wanted.
  private(set) var newest = 1
  /// The version that is shown; 0: none.
  private(set) var shown = 0
  /// The version whose drawing has failed; 0: none.
  ///
  /// It is not tried again.
  private(set) var failed = 0
  /// The size that is wanted.
  private(set) var size = Size.zero
  /// The size of what is shown.
  private(set) var shownSize = Size.zero
  /// Whether the node's view is in a window.
  private(set) var isInWindow = false
  private(set) var isHidden = false
  /// What is drawn now.
  private(set) var underWay: Drawing?
  private var lastNumber = 0

  /// Whether the version that is wanted, in the size that is wanted, is shown.
  var isUpToDate: Bool { shown == newest && shownSize == size }

  /// Whether there is nothing to show in this size.
  var needsPlaceholder: Bool { shown == 0 }

  var demand: Demand {
    guard isInWindow, !isHidden, !size.isEmpty, !isUpToDate, failed != newest, underWay == nil else { return .nothing }
    return shownSize == size ? .draw : .drawAtOnce
  }
}

// What happens to the node. A drawing that is returned is to be cancelled.
extension NodeState {
  /// What the node shows has changed.
  mutating func mark() { newest += 1 }

  /// The node has another size.
  mutating func resize(to size: Size) -> Ticket? {
    guard size != self.size else { return nil }
    self.size = size
    failed = 0
    return abandon()
  }

  /// The node shows something else, of which a drawing of a size is there already, or none.
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

// What happens to a drawing.
extension NodeState {
  /// A drawing is handed over, or begun.
  ///
  /// - Precondition: There is a demand.
  mutating func begin() -> Ticket {
    precondition(demand != .nothing, "a drawing was begun in \(self)")
    lastNumber += 1
    let ticket = Ticket(number: lastNumber)
    underWay = Drawing(ticket: ticket, version: newest, size: size)
    return ticket
  }

  /// A worker has come to a drawing that was handed over, and draws the version that is wanted by now; nil if the
  /// drawing is not wanted any more.
  mutating func start(_ ticket: Ticket) -> Drawing? {
    guard underWay?.ticket == ticket else { return nil }
    underWay?.version = newest
    return underWay
  }

  /// A drawing is finished.
  mutating func finish(_ ticket: Ticket) -> Finish {
    guard let drawing = underWay, drawing.ticket == ticket else { return .discard }
    underWay = nil
    guard drawing.size == size, drawing.version > shown || shownSize != size else { return .discard }
    shown = drawing.version
    shownSize = drawing.size
    return .apply
  }

  /// A drawing has ended without a result.
  ///
  /// Its version is not drawn again; the next one is.
  mutating func fail(_ ticket: Ticket) {
    guard let drawing = underWay.take(if: { $0.ticket == ticket }) else { return }
    failed = drawing.version
  }

  /// A drawing has ended without a result, and is tried again.
  mutating func retry(_ ticket: Ticket) { _ = underWay.take { $0.ticket == ticket } }
}

extension Optional {
  /// Takes the value out if it fulfils a condition.
  fileprivate mutating func take(if condition: (Wrapped) -> Bool) -> Wrapped? {
    guard let value = self, condition(value) else { return nil }
    self = nil
    return value
  }
}
