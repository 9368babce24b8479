// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What the next commit has to do for a view.
struct Marks: OptionSet {
  let rawValue: UInt8

  static let layout = Marks(rawValue: 1 << 0)
  static let display = Marks(rawValue: 1 << 1)
  /// A view within this one is to be laid out.
  static let layoutWithin = Marks(rawValue: 1 << 2)
  /// A view within this one is to be drawn.
  static let displayWithin = Marks(rawValue: 1 << 3)
}

extension View {
  /// Asks for ``layoutSubviews()`` in the commit of this turn.
  ///
  /// Calling it again before that has no further effect. Within ``layoutSubviews()`` it asks for another round in the
  /// same commit; views that are marked after ``Window/layoutRounds`` rounds are not laid out any more, and that is
  /// reported.
  public final func setNeedsLayout() {
    guard !marks.contains(.layout) else { return }
    marks.insert(.layout)
    propagate(.layoutWithin)
  }

  /// Asks for ``draw(_:)`` in the commit of this turn.
  ///
  /// Calling it again before that has no further effect. Within ``draw(_:)`` it asks for the next commit.
  public final func setNeedsDisplay() {
    guard drawsContents, !marks.contains(.display) else { return }
    marks.insert(.display)
    propagate(.displayWithin)
  }

  /// Lays out the view and its subviews now, if any of them is marked.
  public final func layoutIfNeeded() {
    _ = layoutRounds()
  }

  /// Marks the views above, up to the first that is marked already, and asks for a commit.
  private func propagate(_ within: Marks) {
    var view = self
    while let superview = view.superview {
      guard !superview.marks.contains(within) else { return }
      superview.marks.insert(within)
      view = superview
    }
    window?.setNeedsCommit()
  }

  /// Makes the views above know of the marks in a view that has come to them.
  final func propagateMarks() {
    if !marks.isDisjoint(with: [.layout, .layoutWithin]) { propagate(.layoutWithin) }
    if !marks.isDisjoint(with: [.display, .displayWithin]) { propagate(.displayWithin) }
  }

  /// Lays out until nothing is marked, or the rounds are used up; returns how many views were laid out.
  final func layoutRounds() -> Int {
    guard let outer = LayoutRound.begin() else {
      dropLayout("asked for one within itself \(Window.layoutRounds) times")
      return 0
    }
    defer { LayoutRound.end(outer) }
    var count = 0
    var round = 0
    while !marks.isDisjoint(with: [.layout, .layoutWithin]) {
      guard round < Window.layoutRounds else {
        dropLayout("asked for another after \(Window.layoutRounds) rounds")
        break
      }
      round += 1
      LayoutRound.next()
      count += layoutOnce()
    }
    return count
  }

  /// One round: from the top to the bottom, those that are marked.
  private func layoutOnce() -> Int {
    var count = 0
    if marks.remove(.layout) != nil {
      count += 1
      DisplayCallOut.note(self)
      layoutSubviews()
    }
    guard marks.remove(.layoutWithin) != nil else { return count }
    // What a view does may change the list: those that were in it have their turn.
    for view in subviews where view.superview === self {
      if view.layoutRoundAdded == LayoutRound.current {
        // In the next round: a view that adds one in each of its layouts would make this one endless.
        view.propagateMarks()
      } else {
        count += view.layoutOnce()
      }
    }
    return count
  }

  private func dropLayout(_ what: String) {
    let name = dropLayoutMarks() ?? displayName
    Diagnostic.layout.report("the layout of \(name) \(what), and was not made again")
  }

  /// Takes the marks away, and returns the name of a view that had one.
  private func dropLayoutMarks() -> String? {
    var name = marks.remove(.layout) != nil ? displayName : nil
    guard marks.remove(.layoutWithin) != nil else { return name }
    for view in subviews {
      let within = view.dropLayoutMarks()
      name = name ?? within
    }
    return name
  }
}

/// The round of a layout that is under way.
@MainActor
enum LayoutRound {
  /// Its number; 0: none is under way.
  private(set) static var current = 0
  private static var last = 0
  /// How many layouts are under way within each other.
  private static var depth = 0

  /// Begins a layout, maybe within another, whose round is returned; nil: there are too many within each other.
  static func begin() -> Int? {
    guard depth < Window.layoutRounds else { return nil }
    depth += 1
    return current
  }

  static func next() {
    last += 1
    current = last
  }

  static func end(_ outer: Int) {
    depth -= 1
    current = outer
  }
}
