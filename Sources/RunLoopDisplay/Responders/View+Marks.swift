// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The work that the next commit has to do for a view.
struct Marks: OptionSet {
  let rawValue: UInt8

  static let layout = Marks(rawValue: 1 << 0)
  static let display = Marks(rawValue: 1 << 1)
  /// A view within this one needs layout.
  static let layoutWithin = Marks(rawValue: 1 << 2)
  /// A view within this one needs to be drawn.
  static let displayWithin = Marks(rawValue: 1 << 3)
}

extension View {
  /// Requests that ``layoutSubviews()`` be called in this turn's commit.
  ///
  /// Calling it again before the commit has no further effect. Within ``layoutSubviews()``, it requests another round
  /// in the same commit. After ``Window/layoutRounds`` rounds, marked views are not laid out, which is reported.
  public final func setNeedsLayout() {
    if arrangesBySize { sizeMayHaveChanged() }
    markForLayout()
  }

  /// Requests another layout of the views around this one that arrange their subviews by size.
  final func sizeMayHaveChanged() {
    if let superview, superview.arrangesBySize { superview.setNeedsLayout() }
  }

  /// Requests a drawing of contents whose size may have changed.
  final func contentsDidChange() {
    setNeedsDisplay()
    sizeMayHaveChanged()
  }

  final func markForLayout() {
    guard !marks.contains(.layout) else { return }
    marks.insert(.layout)
    propagate(.layoutWithin)
  }

  /// Requests that ``draw(_:)`` be called in this turn's commit.
  ///
  /// Calling it again before the commit has no further effect. Within ``draw(_:)``, it requests the next commit.
  public final func setNeedsDisplay() {
    guard drawsContents, !marks.contains(.display) else { return }
    marks.insert(.display)
    propagate(.displayWithin)
  }

  /// Lays out the view and its subviews immediately if any of them is marked.
  public final func layoutIfNeeded() {
    _ = layoutRounds()
  }

  /// Marks the views above, up to the first one that is already marked, and requests a commit.
  private func propagate(_ within: Marks) {
    var view = self
    while let superview = view.superview {
      guard !superview.marks.contains(within) else { return }
      superview.marks.insert(within)
      view = superview
    }
    window?.setNeedsCommit()
  }

  /// Propagates the marks of a view that was added to another one.
  final func propagateMarks() {
    if !marks.isDisjoint(with: [.layout, .layoutWithin]) { propagate(.layoutWithin) }
    if !marks.isDisjoint(with: [.display, .displayWithin]) { propagate(.displayWithin) }
  }

  /// Lays out until no view is marked or the rounds are used up, and returns the number of views laid out.
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

  /// Performs one round, which lays out the marked views from top to bottom.
  private func layoutOnce() -> Int {
    var count = 0
    if marks.remove(.layout) != nil {
      count += 1
      DisplayCallOut.note(self)
      layoutSubviews()
    }
    guard marks.remove(.layoutWithin) != nil else { return count }
    // A view may change the list of subviews. The views that were in it are still laid out.
    for view in subviews where view.superview === self {
      if view.layoutRoundAdded == LayoutRound.current {
        // These wait for the next round, because views that add others in each layout would make this one endless.
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

  /// Removes the marks, and returns the name of a view that had one.
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

/// The current round of a layout.
@MainActor
enum LayoutRound {
  /// The number of the current round, or 0 if there is none.
  private(set) static var current = 0
  private static var last = 0
  /// The number of nested layouts in progress.
  private static var depth = 0

  /// Begins a layout and returns the round of the enclosing one, or nil if too many layouts are nested.
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
