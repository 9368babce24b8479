// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import Testing

extension Stages {
  /// What Core Foundation calls all activities, with bits that mean nothing.
  static let everything: UInt = 0x0FFF_FFFF
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

extension ObserverPlan {
  /// Watches everything and does nothing.
  static let watcher = ObserverPlan(activities: Stages.everything)
}

extension Log {
  /// What happened, in the letters of the rules, without when and where.
  var letters: String { entries.map { "\($0.event)" }.joined(separator: " ") }
}

/// Core Foundation's loop and ours do this, and so says the model.
func expectRule(_ program: Program, gives letters: String, sourceLocation: SourceLocation = #_sourceLocation) {
  expectRule(program, coreFoundation: letters, ours: letters, sourceLocation: sourceLocation)
}

/// Core Foundation's loop and ours do this, each its own, and so says the model.
func expectRule(
  _ program: Program, coreFoundation: String, ours: String, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(program.faults == [], sourceLocation: sourceLocation)
  let modelOfCoreFoundation = ReferenceModel().run(program)
  let modelOfOurs = ReferenceModel.ours.run(program)
  #expect(modelOfCoreFoundation.letters == coreFoundation, sourceLocation: sourceLocation)
  #expect(modelOfOurs.letters == ours, sourceLocation: sourceLocation)
  #expect(CoreFoundationMachine().run(program) == modelOfCoreFoundation, sourceLocation: sourceLocation)
  #expect(RunLoopMachine().run(program) == modelOfOurs, sourceLocation: sourceLocation)
}

/// A program shows one difference: the model gives our log with that rule changed, as with all.
func expectDifference(
  _ difference: Difference, _ program: Program, coreFoundation: String, ours: String,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  expectRule(program, coreFoundation: coreFoundation, ours: ours, sourceLocation: sourceLocation)
  let log = ReferenceModel(switches: [difference]).run(program)
  #expect(log.letters == ours, sourceLocation: sourceLocation)
}
