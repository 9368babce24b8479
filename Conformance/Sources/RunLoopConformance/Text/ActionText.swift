// SPDX-License-Identifier: Apache-2.0

extension Action: LiteralConvertible {
  var literal: Literal {
    switch self {
    case .add(let item, let mode): .case("add", item, mode)
    case .remove(let item, let mode): .case("remove", item, mode)
    case .invalidate(let item): .case("invalidate", item)
    case .signal(let source): .case("signal", source)
    case .perform(let block, let modes): .case("perform", block, modes)
    case .addCommonMode(let mode): .case("addCommonMode", mode)
    case .setDate(let timer, let tick): .case("setDate", timer, tick)
    case .stop: .case("stop")
    case .stopMode(let mode): .case("stopMode", mode)
    case .wakeUp: .case("wakeUp")
    case .run(let mode, let limit, let returnAfterSource):
      .call(
        ".run",
        [
          .init(nil, mode.literal), .init(nil, limit.literal), .init("returnAfterSource", returnAfterSource.literal),
        ])
    case .runUntilStopped: .case("runUntilStopped")
    case .work(let ticks): .case("work", ticks)
    case .ask(let question): .case("ask", question)
    case .elsewhere(let actions): .case("elsewhere", actions)
    }
  }

  init(_ literal: Literal) throws(LiteralError) {
    guard case .call(let name, _) = literal else { throw .unexpected(literal, insteadOf: "an action") }
    var arguments = try Arguments(of: literal, name)
    switch name {
    case ".add": self = .add(try arguments.require(nil), try arguments.require(nil))
    case ".remove": self = .remove(try arguments.require(nil), try arguments.require(nil))
    case ".invalidate": self = .invalidate(try arguments.require(nil))
    case ".signal": self = .signal(try arguments.require(nil))
    case ".perform": self = .perform(try arguments.require(nil), try arguments.require(nil))
    case ".addCommonMode": self = .addCommonMode(try arguments.require(nil))
    case ".setDate": self = .setDate(try arguments.require(nil), try arguments.require(nil))
    case ".stop": self = .stop
    case ".stopMode": self = .stopMode(try arguments.require(nil))
    case ".wakeUp": self = .wakeUp
    case ".run":
      self = .run(
        try arguments.require(nil), try arguments.require(nil),
        returnAfterSource: try arguments.require("returnAfterSource"))
    case ".runUntilStopped": self = .runUntilStopped
    case ".work": self = .work(try arguments.require(nil))
    case ".ask": self = .ask(try arguments.require(nil))
    case ".elsewhere": self = .elsewhere(try arguments.require(nil))
    default: throw .unexpected(literal, insteadOf: "an action")
    }
    try arguments.end()
  }
}

extension Question: LiteralConvertible {
  var literal: Literal {
    switch self {
    case .contains(let item, let mode): .case("contains", item, mode)
    case .isValid(let item): .case("isValid", item)
    case .isSignalled(let source): .case("isSignalled", source)
    case .date(let timer): .case("date", timer)
    case .nextDate(let mode): .case("nextDate", mode)
    case .modes: .case("modes")
    }
  }

  init(_ literal: Literal) throws(LiteralError) {
    guard case .call(let name, _) = literal else { throw .unexpected(literal, insteadOf: "a question") }
    var arguments = try Arguments(of: literal, name)
    switch name {
    case ".contains": self = .contains(try arguments.require(nil), try arguments.require(nil))
    case ".isValid": self = .isValid(try arguments.require(nil))
    case ".isSignalled": self = .isSignalled(try arguments.require(nil))
    case ".date": self = .date(try arguments.require(nil))
    case ".nextDate": self = .nextDate(try arguments.require(nil))
    case ".modes": self = .modes
    default: throw .unexpected(literal, insteadOf: "a question")
    }
    try arguments.end()
  }
}

extension Item: LiteralConvertible {
  var literal: Literal {
    switch self {
    case .source(let index): .case("source", index)
    case .observer(let index): .case("observer", index)
    case .timer(let index): .case("timer", index)
    }
  }

  init(_ literal: Literal) throws(LiteralError) {
    guard case .call(let name, _) = literal else { throw .unexpected(literal, insteadOf: "an item") }
    var arguments = try Arguments(of: literal, name)
    let index: Int = try arguments.require(nil)
    switch name {
    case ".source": self = .source(index)
    case ".observer": self = .observer(index)
    case ".timer": self = .timer(index)
    default: throw .unexpected(literal, insteadOf: "an item")
    }
    try arguments.end()
  }
}

extension ModeName: LiteralConvertible {
  var literal: Literal {
    switch self {
    case .mode(let number): .case("mode", number)
    case .common: .case("common")
    }
  }

  init(_ literal: Literal) throws(LiteralError) {
    guard literal != .call(".common") else {
      self = .common
      return
    }
    var arguments = try Arguments(of: literal, ".mode")
    self = .mode(try arguments.require(nil))
    try arguments.end()
  }
}

extension Limit: LiteralConvertible {
  var literal: Literal {
    switch self {
    case .poll: .case("poll")
    case .forever: .case("forever")
    case .overdue: .case("overdue")
    case .notANumber: .case("notANumber")
    }
  }

  init(_ literal: Literal) throws(LiteralError) {
    switch literal {
    case .call(".poll", []): self = .poll
    case .call(".forever", []): self = .forever
    case .call(".overdue", []): self = .overdue
    case .call(".notANumber", []): self = .notANumber
    default: throw .unexpected(literal, insteadOf: "a limit")
    }
  }
}

extension Literal {
  /// Returns a case of an enumeration whose associated values have no labels.
  fileprivate static func `case`(_ name: String, _ values: any LiteralConvertible...) -> Literal {
    .call("." + name, values.map { Argument(nil, $0.literal) })
  }
}
