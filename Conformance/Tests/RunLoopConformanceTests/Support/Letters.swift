// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import Testing

extension Stages {
  /// Core Foundation's constant for all activities, including undefined bits.
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
  /// An observer of every bit, without actions.
  static let watcher = ObserverPlan(activities: Stages.everything)
}

extension Log {
  /// The events in the letters of the rules, without their times and places.
  var letters: String { entries.map { "\($0.event)" }.joined(separator: " ") }
}

/// Expects the same events from Core Foundation's loop, from ours and from the model.
func expectRule(_ program: Program, gives letters: String, sourceLocation: SourceLocation = #_sourceLocation) {
  expectRule(program, coreFoundation: letters, ours: letters, sourceLocation: sourceLocation)
}

/// Expects different events from Core Foundation's loop and ours, and the same from the models of each.
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

/// Expects a program to demonstrate one difference: the model has our log with only that rule changed.
func expectDifference(
  _ difference: Difference, _ program: Program, coreFoundation: String, ours: String,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  expectRule(program, coreFoundation: coreFoundation, ours: ours, sourceLocation: sourceLocation)
  let log = ReferenceModel(switches: [difference]).run(program)
  #expect(log.letters == ours, sourceLocation: sourceLocation)
}
