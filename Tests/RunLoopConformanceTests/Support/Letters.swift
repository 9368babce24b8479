import RunLoopConformance
import Testing

extension Log {
  /// The log as the documentation writes it: `E BT BS S0 BW AW X =stopped`.
  ///
  /// The first observer is written without its number. `zzz`: asleep for ever.
  var letters: String { entries.map(\.event.letters).joined(separator: " ") }
}

extension Log.Event {
  fileprivate var letters: String {
    switch self {
    case .observer(0, let activity): Self.letters(activity)
    case .observer(let observer, let activity): "\(Self.letters(activity))\(observer)"
    case .source(let source): "S\(source)"
    case .timer(let timer): "T\(timer)"
    case .block(let block): "B\(block)"
    case .ranWith(let outcome): "=\(outcome)"
    case .answer(_, .bool(let bool)): bool ? "yes" : "no"
    case .answer(_, .tick(let tick)): tick.map { "@\($0)" } ?? "@none"
    case .answer(_, .modes(let modes)): "{\(modes.map(\.letters).sorted().joined(separator: ","))}"
    case .asleepForEver: "zzz"
    case .hung: "hung"
    }
  }

  private static func letters(_ activity: UInt) -> String {
    switch activity {
    case 1: "E"
    case 2: "BT"
    case 4: "BS"
    case 32: "BW"
    case 64: "AW"
    case 128: "X"
    default: "\(activity)?"
    }
  }
}

extension ModeName {
  fileprivate var letters: String {
    switch self {
    case .mode(let number): "\(number)"
    case .common: "common"
    }
  }
}

/// Core Foundation's bits.
enum Activities {
  static let entry: UInt = 1
  static let beforeTimers: UInt = 2
  static let beforeSources: UInt = 4
  static let beforeWaiting: UInt = 32
  static let afterWaiting: UInt = 64
  static let exit: UInt = 128
  static let all: UInt = 0x0FFF_FFFF
}

extension Action {
  static let runDefault = Action.run(.mode(0), .forever, returnAfterSource: false)
  static let pollDefault = Action.run(.mode(0), .poll, returnAfterSource: false)
  static let runForSource = Action.run(.mode(0), .forever, returnAfterSource: true)

  static func run(_ mode: Int) -> Action { .run(.mode(mode), .forever, returnAfterSource: false) }
  static func poll(_ mode: Int) -> Action { .run(.mode(mode), .poll, returnAfterSource: false) }
  static func add(_ item: Item, _ mode: Int) -> Action { .add(item, .mode(mode)) }
  static func remove(_ item: Item, _ mode: Int) -> Action { .remove(item, .mode(mode)) }
  static func post(_ block: Int) -> Action { .perform(block, [.mode(0)]) }
  static let watch = Action.add(.observer(0), .mode(0))
}

extension Body {
  /// Does this at its first call, and nothing later.
  static func once(_ actions: Action...) -> Body { Body([actions]) }
  /// Does this at every call.
  static func always(_ actions: Action...) -> Body { Body(afterwards: actions) }
}

extension ObserverPlan {
  /// Watches everything and does nothing.
  static let watcher = ObserverPlan(activities: Activities.all)

  static func at(_ activities: UInt, repeats: Bool = true, order: Int = 0, _ body: Body = Body()) -> ObserverPlan {
    ObserverPlan(activities: activities, repeats: repeats, order: order, body: body)
  }
}

/// The model gives this log of a program, with these rules changed.
func expectModel(
  _ program: Program, _ switches: Set<Difference> = [], gives letters: String,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let log = ReferenceModel(switches: switches).run(program)
  #expect(log.letters == letters, sourceLocation: sourceLocation)
}

/// A program shows a difference: Core Foundation's log, and the one with that one rule changed.
func expectDifference(
  _ difference: Difference, _ program: Program, coreFoundation: String, ours: String,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  expectModel(program, gives: coreFoundation, sourceLocation: sourceLocation)
  expectModel(program, [difference], gives: ours, sourceLocation: sourceLocation)
  expectModel(program, Set(Difference.allCases), gives: ours, sourceLocation: sourceLocation)
}
