// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopDisplay

@Suite("The state of a node")
struct NodeStateTests {
  private typealias Ticket = NodeState.Ticket

  private static let size = Size(width: 10, height: 1)

  /// A state with the drawings that were begun, of which the last may be under way.
  private struct Case {
    var state = NodeState()
    var tickets: [Ticket] = []

    init(_ events: String) {
      _ = state.resize(to: size)
      for event in events.split(separator: " ") { _ = perform(String(event)) }
    }

    /// Performs an event, and returns the action to take.
    mutating func perform(_ event: String) -> String {
      switch event {
      case "mark":
        state.mark()
        return ""
      case "resize": return cancelled(state.resize(to: Size(width: 20, height: 1)))
      case "hide": return cancelled(state.setHidden(true))
      case "show": return cancelled(state.setHidden(false))
      case "enter":
        state.enterWindow()
        return ""
      case "leave": return cancelled(state.leaveWindow())
      case "begin":
        tickets.append(state.begin())
        return ""
      case "start": return state.start(tickets[tickets.count - 1]).map { "version \($0.version)" } ?? "not wanted"
      case "finish": return "\(state.finish(tickets[tickets.count - 1]))"
      case "finishEarlier": return "\(state.finish(tickets[0]))"
      case "fail":
        state.fail(tickets[tickets.count - 1])
        return ""
      case "retry":
        state.retry(tickets[tickets.count - 1])
        return ""
      default: fatalError(event)
      }
    }

    private func cancelled(_ ticket: Ticket?) -> String {
      guard let ticket else { return "" }
      return "cancel \(tickets.firstIndex(of: ticket).map { $0 + 1 } ?? 0)"
    }

    /// The wanted and shown versions, the drawing, and the action to take.
    var text: String {
      let drawing = state.underWay.map { " drawing \($0.version)" } ?? ""
      return "\(state.newest) shown \(state.shown)\(drawing): \(state.demand)"
    }
  }

  private static let states = [
    ("outside", ""),
    ("nothing shown", "enter"),
    ("first drawing", "enter begin"),
    ("first drawing, marked", "enter begin mark"),
    ("up to date", "enter begin finish"),
    ("marked", "enter begin finish mark"),
    ("drawing", "enter begin finish mark begin"),
    ("drawing, marked", "enter begin finish mark begin mark"),
    ("resized", "enter begin finish resize"),
    ("failed", "enter begin fail"),
    ("hidden", "enter begin finish mark hide"),
    ("left", "enter begin finish mark leave"),
  ]

  private static func record(_ event: String) -> [String] {
    states.map { name, events in
      var state = Case(events)
      let action = state.perform(event)
      return "\(name): \(state.text)" + (action.isEmpty ? "" : " [\(action)]")
    }
  }

  @Test("a mark makes a new node version, which is drawn when no drawing is under way")
  func mark() {
    #expect(
      Self.record("mark") == [
        "outside: 2 shown 0: nothing",
        "nothing shown: 2 shown 0: drawAtOnce",
        "first drawing: 2 shown 0 drawing 1: nothing",
        "first drawing, marked: 3 shown 0 drawing 1: nothing",
        "up to date: 2 shown 1: draw",
        "marked: 3 shown 1: draw",
        "drawing: 3 shown 1 drawing 2: nothing",
        "drawing, marked: 4 shown 1 drawing 2: nothing",
        "resized: 2 shown 1: drawAtOnce",
        "failed: 2 shown 0: drawAtOnce",
        "hidden: 3 shown 1: nothing",
        "left: 3 shown 1: nothing",
      ])
  }

  @Test("a resize cancels a drawing and draws the new size at once")
  func resize() {
    #expect(
      Self.record("resize") == [
        "outside: 1 shown 0: nothing",
        "nothing shown: 1 shown 0: drawAtOnce",
        "first drawing: 1 shown 0: drawAtOnce [cancel 1]",
        "first drawing, marked: 2 shown 0: drawAtOnce [cancel 1]",
        "up to date: 1 shown 1: drawAtOnce",
        "marked: 2 shown 1: drawAtOnce",
        "drawing: 2 shown 1: drawAtOnce [cancel 2]",
        "drawing, marked: 3 shown 1: drawAtOnce [cancel 2]",
        "resized: 1 shown 1: drawAtOnce",
        "failed: 1 shown 0: drawAtOnce",
        "hidden: 2 shown 1: nothing",
        "left: 2 shown 1: nothing",
      ])
  }

  @Test("a node that leaves the window cancels its drawing", arguments: ["leave", "hide"])
  func leave(event: String) {
    #expect(
      Self.record(event) == [
        "outside: 1 shown 0: nothing",
        "nothing shown: 1 shown 0: nothing",
        "first drawing: 1 shown 0: nothing [cancel 1]",
        "first drawing, marked: 2 shown 0: nothing [cancel 1]",
        "up to date: 1 shown 1: nothing",
        "marked: 2 shown 1: nothing",
        "drawing: 2 shown 1: nothing [cancel 2]",
        "drawing, marked: 3 shown 1: nothing [cancel 2]",
        "resized: 1 shown 1: nothing",
        "failed: 1 shown 0: nothing",
        "hidden: 2 shown 1: nothing",
        "left: 2 shown 1: nothing",
      ])
  }

  @Test("a node that enters the window or becomes visible requests a drawing if it is out of date")
  func enter() {
    #expect(
      Self.record("enter").filter { $0.hasPrefix("outside") || $0.hasPrefix("left") || $0.hasPrefix("up") } == [
        "outside: 1 shown 0: drawAtOnce", "up to date: 1 shown 1: nothing", "left: 2 shown 1: draw",
      ])
    #expect(Self.record("show").filter { $0.hasPrefix("hidden") } == ["hidden: 2 shown 1: draw"])
  }

  @Test(
    "a finished drawing is shown if it is newer and has the right size; then the newest version is drawn",
    arguments: [
      ("enter begin finish", "apply", "1 shown 1: nothing"),
      ("enter begin mark finish", "apply", "2 shown 1: draw"),
      ("enter begin finish mark begin mark mark finish", "apply", "4 shown 2: draw"),
      // It left the window, is hidden, or has another size.
      ("enter begin leave finish", "discard", "1 shown 0: nothing"),
      ("enter begin hide finish", "discard", "1 shown 0: nothing"),
      ("enter begin resize finish", "discard", "1 shown 0: drawAtOnce"),
      // It is already finished, or has failed.
      ("enter begin finish finish", "discard", "1 shown 1: nothing"),
      ("enter begin fail finish", "discard", "1 shown 0: nothing"),
      // An earlier, cancelled drawing finishes during or after a newer one.
      ("enter begin resize begin finishEarlier", "discard", "1 shown 0 drawing 1: nothing"),
      ("enter begin leave enter mark begin finish finishEarlier", "discard", "2 shown 2: nothing"),
    ])
  func finish(events: String, action: String, text: String) {
    let split = events.split(separator: " ").map(String.init)
    var state = Case(split.dropLast().joined(separator: " "))
    #expect(state.perform(split[split.count - 1]) == action)
    #expect(state.text == text)
  }

  @Test("a worker draws the version that is wanted when it starts")
  func start() {
    var state = Case("enter begin mark mark")
    #expect(state.perform("start") == "version 3")
    #expect(state.perform("finish") == "apply" && state.text == "3 shown 3: nothing")
    state = Case("enter begin leave")
    #expect(state.perform("start") == "not wanted")
  }

  @Test("a version whose drawing failed is not retried, but the next one is drawn")
  func failure() {
    var state = Case("enter begin fail")
    #expect(state.text == "1 shown 0: nothing")
    _ = state.perform("mark")
    #expect(state.text == "2 shown 0: drawAtOnce")
    #expect(Case("enter begin retry").text == "1 shown 0: drawAtOnce")
    // A failure says nothing about a cancelled drawing.
    #expect(Case("enter begin leave enter fail").text == "1 shown 0: drawAtOnce")
  }

  @Test("a node without cells is not drawn")
  func empty() {
    var state = NodeState()
    state.enterWindow()
    #expect(state.demand == .nothing)
    _ = state.resize(to: Size(width: 0, height: 5))
    #expect(state.demand == .nothing)
  }
}
