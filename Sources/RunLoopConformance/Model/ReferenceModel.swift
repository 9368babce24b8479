/// A run loop as the rules have it: plain values, no thread and no kernel.
///
/// Without switches it gives Core Foundation's log of a program, with all of them ours. Each switch changes one rule, at the
/// rule's place.
public struct ReferenceModel: Machine {
  /// The rules that are changed.
  public let switches: Set<Difference>

  /// A model of Core Foundation's loop, but for some rules.
  public init(switches: Set<Difference> = []) {
    self.switches = switches
  }

  /// The model of our loop.
  public static let ours = ReferenceModel(switches: Set(Difference.allCases))

  /// Runs a program on a new loop.
  ///
  /// The log is the same every time.
  public func run(_ program: Program) -> Log {
    var loop = ModelLoop(program, Switches(switches))
    loop.perform(program.main)
    return loop.log
  }
}

extension Program {
  /// Whether the log shows in which order common items enter a new common mode.
  ///
  /// Core Foundation does not say in which: it keeps them in a set, by their addresses. Such a program is none to compare.
  public var showsOrderOfCommonItems: Bool {
    var addsCommonMode = false
    forEachAction { if case .addCommonMode = $0 { addsCommonMode = true } }
    guard addsCommonMode else { return false }
    var loop = ModelLoop(self, Switches([]))
    var reversed = loop
    reversed.hasReversedCommonItems = true
    loop.perform(main)
    reversed.perform(main)
    return loop.log != reversed.log
  }
}
