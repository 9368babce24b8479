// SPDX-License-Identifier: Apache-2.0

extension TwoThreads {
  /// The operation of the other thread.
  ///
  /// The program's idle source is 0 and its stopping timer 0; source 2, timer 3 and observer 3 are in no mode yet.
  package enum Operation: CaseIterable, Hashable, Sendable {
    case nothing, wake, stop, stopMode, stopOtherMode, stopTwice
    case post, postCommon, postOther, postAndWake, postAndStop
    case signal, signalAndWake, signalAndStop, addSignalled
    case removeSource, invalidateSource
    case addTimer, addDueTimer, addCommonTimer
    case moveToPast, moveToNow, moveEarlier, moveLater, moveStopper
    case removeTimer, invalidateTimer
    case addObserver, removeObserver, invalidateObserver
    case makeCommon, empty, emptyAndWake, ask

    var actions: [Action] {
      switch self {
      case .nothing: []
      case .wake: [.wakeUp]
      case .stop: [.stop]
      case .stopMode: [.stopMode(0)]
      case .stopOtherMode: [.stopMode(1)]
      case .stopTwice: [.stop, .stop]
      case .post: [.perform(3, [.mode(0)])]
      case .postCommon: [.perform(3, [.common])]
      case .postOther: [.perform(3, [.mode(1), .mode(2)])]
      case .postAndWake: [.perform(3, [.mode(0)]), .wakeUp]
      case .postAndStop: [.perform(3, [.mode(0)]), .stop]
      case .signal: [.signal(0)]
      case .signalAndWake: [.signal(0), .wakeUp]
      case .signalAndStop: [.signal(0), .stop]
      case .addSignalled: [.signal(2), .add(.source(2), .mode(0)), .wakeUp]
      case .removeSource: [.remove(.source(0), .mode(0))]
      case .invalidateSource: [.invalidate(.source(0))]
      case .addTimer: [.add(.timer(3), .mode(0))]
      case .addDueTimer: [.setDate(3, -1), .add(.timer(3), .mode(0))]
      case .addCommonTimer: [.add(.timer(3), .common)]
      case .moveToPast: [.setDate(2, -1)]
      case .moveToNow: [.setDate(2, 1)]
      case .moveEarlier: [.setDate(2, 2)]
      case .moveLater: [.setDate(2, 8)]
      case .moveStopper: [.setDate(0, 3)]
      case .removeTimer: [.remove(.timer(2), .mode(0))]
      case .invalidateTimer: [.invalidate(.timer(2))]
      case .addObserver: [.add(.observer(3), .mode(0))]
      case .removeObserver: [.remove(.observer(2), .mode(0))]
      case .invalidateObserver: [.invalidate(.observer(2))]
      case .makeCommon: [.addCommonMode(1), .add(.timer(3), .common)]
      case .empty: Self.everything.map { .remove($0, .mode(0)) }
      case .emptyAndWake: Self.everything.map { .remove($0, .mode(0)) } + [.wakeUp]
      case .ask:
        [
          .ask(.contains(.timer(1), .mode(0))), .ask(.isValid(.timer(1))), .ask(.isSignalled(1)), .ask(.date(2)),
          .ask(.nextDate(.mode(0))), .ask(.nextDate(.common)), .ask(.modes),
        ]
      }
    }

    private static let everything: [Item] = [.source(0), .source(1), .timer(0), .timer(1), .timer(2)]
  }
}
