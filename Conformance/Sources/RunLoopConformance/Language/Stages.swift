// SPDX-License-Identifier: Apache-2.0

/// Core Foundation's bits of an observer's activities.
package enum Stages {
  package static let entry: UInt = 1
  package static let beforeTimers: UInt = 2
  package static let beforeSources: UInt = 4
  package static let beforeWaiting: UInt = 32
  package static let afterWaiting: UInt = 64
  package static let exit: UInt = 128
  package static let all: UInt = 231
}

extension Body {
  /// Returns a body with actions in its first call only.
  package static func once(_ actions: Action...) -> Body { Body([actions]) }
  /// Returns a body with the same actions in every call.
  package static func always(_ actions: Action...) -> Body { Body(afterwards: actions) }
}

extension ObserverPlan {
  /// Returns an observer of some activities with a body.
  package static func at(
    _ activities: UInt, repeats: Bool = true, order: Int = 0, _ body: Body = Body()
  ) -> ObserverPlan {
    ObserverPlan(activities: activities, repeats: repeats, order: order, body: body)
  }
}
