// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// An item in a mode of a loop, described so that two programs can be compared.
struct LoopItem: Hashable, Sendable {
  /// The kinds of items in a loop's modes.
  enum Kind: String, Sendable { case source0, source1, observer, timer }

  let mode: String
  let kind: Kind
  /// The order; nil for a timer, which has none.
  let order: Int?
  /// An observer's activities as a hexadecimal number.
  var activities: String?
}

/// A row of the running application's main loop that Xilankong prints.
struct ApplicationLoopRow: Sendable {
  /// The counterpart of a row in this package.
  enum Here: Sendable, Hashable {
    /// An item with the same mode, kind, order and activities.
    case same(String)
    /// No item; the text has the reason.
    case missing(String)
  }

  let item: LoopItem
  /// The name of the item's call-out.
  let name: String
  let here: Here

  private init(
    _ mode: String, _ kind: LoopItem.Kind, _ order: Int?, _ activities: String?, _ name: String, _ here: Here
  ) {
    item = LoopItem(mode: mode, kind: kind, order: order, activities: activities)
    self.name = name
    self.here = here
  }

  private static let noServer = Here.missing("the system's window server sends nothing: there is none")
  private static let unnamed = Here.missing("a port of the system's; the listing does not name its use")

  /// The common items, which are in both the default and the tracking mode.
  static let commonItems: [ApplicationLoopRow] = [
    row(.source0, -1, "_UIApplicationHandleEventQueue", .same("the queue of events")),
    row(.source0, -1, "PurpleEventSignalCallback", noServer),
    row(
      .source0, 0, "FBSSerialQueueRunLoopSourceHandler", .missing("no other process manages the application's scenes")),
    row(.source1, 0, "port 17923", unnamed),
    row(.source1, 0, "port 12039", unnamed),
    row(.source1, 0, "port 16647", unnamed),
    row(.source1, -1, "PurpleEventCallback", noServer),
    row(.source1, 0, "notify_port_callback", .missing("no notifications come from other processes")),
    row(.source1, 0, "__IOHIDEventSystemClientAvailabilityCallback", .missing("the terminal is there, or has hung up")),
    row(.source1, 0, "__IOHIDEventSystemClientQueueCallback", .same("the terminal is readable")),
    row(.source1, 1, "__IOMIGMachPortPortCallback", .missing("there are no drivers to talk to")),
    row(.observer, -2_147_483_647, "_wrapRunLoopWithAutoreleasePoolHandler", "0x1", .same("TurnPool opens a pool")),
    row(.observer, 0, "_UIGestureRecognizerUpdateObserver", "0x20", .same("the actions of gestures")),
    row(.observer, 1_999_000, "_afterCACommitHandler", "0xa0", .same("the stage before the commit; see E4")),
    row(
      .observer, 2_000_000, "CA::Transaction::observer_callback", "0xa0", .same("the commit: layout, drawing, frame")),
    row(
      .observer, 2_147_483_647, "_wrapRunLoopWithAutoreleasePoolHandler", "0xa0",
      .same("TurnPool closes it, opens another")),
    row(.timer, nil, "CA::timer_callback", .same("the frame clock, which has a date while a frame is due")),
  ]

  /// The items of the two other modes.
  static let others: [ApplicationLoopRow] = [
    ApplicationLoopRow(
      "UIInitializationRunLoopMode", .source0, 0, nil, "FBSSerialQueueRunLoopSourceHandler",
      .missing("no other process manages the application's scenes")),
    ApplicationLoopRow(
      "UIInitializationRunLoopMode", .observer, 2_000_000, "0xa0", "CA::Transaction::observer_callback",
      .same("the commit")),
    ApplicationLoopRow(
      "GSEventReceiveRunLoopMode", .source0, -1, nil, "PurpleEventSignalCallback", .same("the queue of events")),
    ApplicationLoopRow(
      "GSEventReceiveRunLoopMode", .source1, -1, nil, "PurpleEventCallback",
      .missing("the terminal is there too, of the order 0: a descriptor's source has no other")),
  ]

  private static func row(
    _ kind: LoopItem.Kind, _ order: Int?, _ name: String, _ activities: String? = nil, _ here: Here
  ) -> ApplicationLoopRow {
    ApplicationLoopRow("common", kind, order, activities, name, here)
  }

  private static func row(_ kind: LoopItem.Kind, _ order: Int?, _ name: String, _ here: Here) -> ApplicationLoopRow {
    ApplicationLoopRow("common", kind, order, nil, name, here)
  }

  /// The items that only ui-catalog's loop has, by the orders of the observers.
  static let additions = [
    1_000_000: "nodes that were changed on other threads are applied",
    2_001_000: "what comes after the commit, as in the article's other dump",
    2_147_483_646: "the turn's asynchronous transaction, as with AsyncDisplayKit",
  ]

  static let commonModes = ["kCFRunLoopDefaultMode", "UITrackingRunLoopMode"]

  /// The rows of every mode, with the common items repeated for each common mode.
  static let all: [ApplicationLoopRow] =
    commonModes.flatMap { mode in
      commonItems.map {
        ApplicationLoopRow(mode, $0.item.kind, $0.item.order, $0.item.activities, $0.name, $0.here)
      }
    } + others
}
