// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension RunLoop: CustomDebugStringConvertible {
  /// A description of the loop and its contents, formatted like Core Foundation's description of a `CFRunLoop`.
  ///
  /// Can be used from any thread.
  public var debugDescription: String {
    let state = word.state
    // Items take their own lock to describe themselves. That lock precedes the table's, so the items are copied first.
    let (names, common, modes, now) = table.withLock { table in
      (
        table.commonNames, table.orderedCommonItems,
        table.modes.values.sorted { $0.name.rawValue < $1.name.rawValue }.map(ModeListing.init), waiter.now
      )
    }
    var text = "<RunLoop \(addressDescription(self))>{wakeup port = \(state.portDescription), "
    text += "stopped = \(stopFlag.isSet), ignoreWakeUps = \(!state.isListening), \n"
    let face = faceReading
    text += "thread = \(threadID == 0 ? "(none)" : "\(nameOfThread ?? "?") (\(threadID))"), depth = \(face.depth), "
    text += "waiting blocks = \(face.waitingBlocks),\n"
    text += "current mode = \(currentMode?.rawValue ?? "(none)"),\n"
    text += "common modes = \(setDescription(names.map { "\"\($0)\"" })),\n"
    text += "common mode items = \(setDescription(common.map { String(reflecting: $0) })),\n"
    text += "modes = \(setDescription(modes.map { $0.description(at: now) }))}"
    return text
  }
}

/// A snapshot of a mode's items.
private struct ModeListing {
  let name: RunLoop.Mode
  let sources: [RunLoop.Source]
  let ports: [Port]
  let descriptors: [RunLoop.DescriptorSource]
  let observers: [RunLoop.Observer]
  let timers: [Timer]
  let nextWake: Tick
  let nextDue: Tick

  /// Requires the table's lock.
  init(_ mode: ModeState) {
    name = mode.name
    sources = mode.sources.values.map(\.item).sorted { $0.order < $1.order }
    ports = mode.ports.values.map(\.item)
    descriptors = mode.descriptors.values.map(\.item).sorted { $0.descriptor < $1.descriptor }
    observers = Array(mode.observers)
    timers = mode.timers.all
    nextWake = mode.timers.wakeTick
    nextDue = mode.timers.firstTick
  }

  func description(at now: Tick) -> String {
    "<RunLoop.Mode>{name = \(name),\n"
      + "\tsources0 = \(list(sources)),\n\tsources1 = \(list(descriptors.map(\.debugDescription) + ports.map(\.debugDescription))),\n"
      + "\tobservers = \(list(observers)),\n\ttimers = \(list(timers)),\n"
      + "\tcurrently \(now.nanoseconds) / soft deadline in: \(ahead(nextDue, now)) / "
      + "hard deadline in: \(ahead(nextWake, now))\n}"
  }

  private func list(_ items: [some CustomDebugStringConvertible]) -> String { list(items.map(\.debugDescription)) }

  private func list(_ items: [String]) -> String { items.isEmpty ? "(null)" : setDescription(items) }

  private func ahead(_ tick: Tick, _ now: Tick) -> String {
    tick == .never ? "never" : "\(Double(tick - now) / 1e9) sec (@ \(tick.nanoseconds))"
  }
}

extension WakeState {
  /// The kind of sleep, printed where Core Foundation prints its wake-up port.
  fileprivate var portDescription: String { sleeper == .nobody ? "none" : "\(sleeper)" }
}

/// Formats a set as Core Foundation does.
private func setDescription(_ members: [String]) -> String {
  "{count = \(members.count), entries =>\n" + members.enumerated().map { "\t\($0) : \($1)\n" }.joined() + "}"
}

func addressDescription(_ object: AnyObject) -> String {
  "0x" + String(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()), radix: 16)
}

func yesOrNo(_ flag: Bool) -> String { flag ? "Yes" : "No" }
