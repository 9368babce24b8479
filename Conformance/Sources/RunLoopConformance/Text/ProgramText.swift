// SPDX-License-Identifier: Apache-2.0

extension Program {
  /// Returns the program as a Swift expression, on lines of at most `width` characters.
  ///
  /// The first line begins after `used` characters of a line with `indentation`.
  package func source(width: Int = 120, indentation: Int = 0, used: Int = 0) -> String {
    literal.layout(width: width, indentation: indentation, used: used)
  }

  /// Parses the output of ``source(width:indentation:used:)``.
  package init(source: String) throws(LiteralError) {
    try self.init(try LiteralReader.read(source))
  }
}

extension Program: CustomStringConvertible {
  package var description: String { source() }
}

extension Program: LiteralConvertible {
  var literal: Literal {
    var arguments = Arguments()
    arguments.add("sources", sources, unless: [])
    arguments.add("observers", observers, unless: [])
    arguments.add("timers", timers, unless: [])
    arguments.add("blocks", blocks, unless: [])
    arguments.add("main", main, unless: [])
    arguments.add("whileAsleep", whileAsleep, unless: [])
    return .call("Program", arguments.all)
  }

  init(_ literal: Literal) throws(LiteralError) {
    var arguments = try Arguments(of: literal, "Program")
    self.init(
      sources: try arguments.take("sources") ?? [], observers: try arguments.take("observers") ?? [],
      timers: try arguments.take("timers") ?? [], blocks: try arguments.take("blocks") ?? [],
      main: try arguments.take("main") ?? [], whileAsleep: try arguments.take("whileAsleep") ?? [])
    try arguments.end()
  }
}

extension SourcePlan: LiteralConvertible {
  var literal: Literal {
    var arguments = Arguments()
    arguments.add("order", order, unless: 0)
    arguments.add("tellsModes", tellsModes, unless: false)
    arguments.add("body", body, unless: Body())
    return .call("SourcePlan", arguments.all)
  }

  init(_ literal: Literal) throws(LiteralError) {
    var arguments = try Arguments(of: literal, "SourcePlan")
    self.init(
      order: try arguments.take("order") ?? 0, tellsModes: try arguments.take("tellsModes") ?? false,
      body: try arguments.take("body") ?? Body())
    try arguments.end()
  }
}

extension ObserverPlan: LiteralConvertible {
  var literal: Literal {
    var arguments = Arguments()
    arguments.add("activities", Int(activities))
    arguments.add("repeats", repeats, unless: true)
    arguments.add("order", order, unless: 0)
    arguments.add("body", body, unless: Body())
    return .call("ObserverPlan", arguments.all)
  }

  init(_ literal: Literal) throws(LiteralError) {
    var arguments = try Arguments(of: literal, "ObserverPlan")
    let activities: Int = try arguments.require("activities")
    guard let bits = UInt(exactly: activities) else {
      throw .unexpected(.number(activities), insteadOf: "bits of activities")
    }
    self.init(
      activities: bits, repeats: try arguments.take("repeats") ?? true, order: try arguments.take("order") ?? 0,
      body: try arguments.take("body") ?? Body())
    try arguments.end()
  }
}

extension TimerPlan: LiteralConvertible {
  var literal: Literal {
    var arguments = Arguments()
    arguments.add("date", date)
    arguments.add("interval", interval, unless: 0)
    arguments.add("body", body, unless: Body())
    return .call("TimerPlan", arguments.all)
  }

  init(_ literal: Literal) throws(LiteralError) {
    var arguments = try Arguments(of: literal, "TimerPlan")
    self.init(
      date: try arguments.require("date"), interval: try arguments.take("interval") ?? 0,
      body: try arguments.take("body") ?? Body())
    try arguments.end()
  }
}

extension Body: LiteralConvertible {
  var literal: Literal {
    var arguments = Arguments()
    arguments.add(nil, calls, unless: [])
    arguments.add("afterwards", afterwards, unless: [])
    return .call("Body", arguments.all)
  }

  init(_ literal: Literal) throws(LiteralError) {
    var arguments = try Arguments(of: literal, "Body")
    self.init(try arguments.take(nil) ?? [], afterwards: try arguments.take("afterwards") ?? [])
    try arguments.end()
  }
}

extension Interruption: LiteralConvertible {
  var literal: Literal {
    .call("Interruption", [.init("at", tick.literal), .init(nil, actions.literal)])
  }

  init(_ literal: Literal) throws(LiteralError) {
    var arguments = try Arguments(of: literal, "Interruption")
    self.init(at: try arguments.require("at"), try arguments.require(nil))
    try arguments.end()
  }
}
