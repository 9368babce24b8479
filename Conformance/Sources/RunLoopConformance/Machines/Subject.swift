// SPDX-License-Identifier: Apache-2.0

/// An interpreter's interface to a run loop: its operations, and its queries.
///
/// Items, blocks and modes are identified by their numbers in the program. All functions are called on the program's
/// thread or, while that waits, on another.
protocol Subject: AnyObject, Sendable {
  /// Creates the program's items, which call the interpreter.
  func makeItems(of program: Program, for interpreter: Interpreter)

  func add(_ item: Item, to mode: ModeName)
  func remove(_ item: Item, from mode: ModeName)
  func invalidate(_ item: Item)
  func signal(source: Int)
  func perform(block: Int, in modes: [ModeName], for interpreter: Interpreter)
  func addCommonMode(_ mode: Int)
  func setDate(ofTimer timer: Int, to tick: Int)
  func stop()
  func stop(mode: Int)
  func wakeUp()
  func run(in mode: ModeName, _ limit: Limit, returnAfterSource: Bool) -> RunOutcome
  func runUntilStopped()

  func contains(_ item: Item, in mode: ModeName) -> Bool
  func isValid(_ item: Item) -> Bool
  func isSignalled(source: Int) -> Bool
  /// Returns a timer's date, or nil for none.
  func date(ofTimer timer: Int) -> Int?
  /// Returns the next date of a mode, or nil for none.
  func nextDate(in mode: ModeName) -> Int?
  var modes: Set<ModeName> { get }
  var currentMode: ModeName? { get }
  var isWaiting: Bool { get }

  /// The virtual time.
  var tick: Int { get }
  /// Advances the time.
  func work(_ ticks: Int)
  /// Makes one more thread use the program's time.
  func adoptCallingThread()
}

extension Subject {
  func answer(_ question: Question) -> Answer {
    switch question {
    case .contains(let item, let mode): .bool(contains(item, in: mode))
    case .isValid(let item): .bool(isValid(item))
    case .isSignalled(let source): .bool(isSignalled(source: source))
    case .date(let timer): .tick(date(ofTimer: timer))
    case .nextDate(let mode): .tick(nextDate(in: mode))
    case .modes: .modes(modes)
    }
  }
}

extension ModeName {
  /// Returns a mode's name for both loops, which have constants for the default mode and the pseudo-mode.
  static func spell(_ number: Int) -> String { "mode \(number)" }

  /// Returns the number of a mode other than the default mode and the pseudo-mode.
  static func number(in name: some StringProtocol) -> Int? {
    name.hasPrefix("mode ") ? Int(name.dropFirst(5)) : nil
  }
}
