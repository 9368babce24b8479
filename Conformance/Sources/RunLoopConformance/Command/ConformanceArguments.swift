// SPDX-License-Identifier: Apache-2.0

/// What the tool was asked for.
struct ConformanceArguments: Equatable {
  enum Task: Equatable {
    case help
    case series
    /// One program of the series, with its logs.
    case show(Int)
    /// A program from a file, with its logs.
    case read(String)
    /// The page of the rules' logs, written to a file or compared with it.
    case page(String, check: Bool)
    /// The other pages and the names of the rules, written into the project in a folder or compared with what is there.
    case rules(String, check: Bool)
  }

  var task = Task.series
  /// Nil: a random one.
  var seed: UInt64?
  var programs = 2000
  /// Nil: as many as there are processors.
  var jobs: Int?

  struct Failure: Error, Equatable {
    var message: String
  }

  init(_ arguments: [String]) throws(Failure) {
    var rest = arguments[...]
    var checks = false
    while let option = rest.popFirst() {
      switch option {
      case "--help", "-h": task = .help
      case "--seed": seed = try Self.number(rest.popFirst(), of: option)
      case "--programs": programs = try Self.number(rest.popFirst(), of: option)
      case "--jobs": jobs = max(1, try Self.number(rest.popFirst(), of: option))
      case "--program": task = .show(try Self.number(rest.popFirst(), of: option))
      case "--file": task = .read(try Self.value(rest.popFirst(), of: option))
      case "--page": task = .page(try Self.value(rest.popFirst(), of: option), check: false)
      case "--rules": task = .rules(try Self.value(rest.popFirst(), of: option), check: false)
      case "--check": checks = true
      default: throw Failure(message: "unknown argument \(option)")
      }
    }
    guard checks else { return }
    switch task {
    case .page(let path, _): task = .page(path, check: true)
    case .rules(let path, _): task = .rules(path, check: true)
    default: throw Failure(message: "--check wants a page or the rules")
    }
  }

  private static func value(_ text: String?, of option: String) throws(Failure) -> String {
    guard let text else { throw Failure(message: "\(option) wants a value") }
    return text
  }

  private static func number<Number: FixedWidthInteger>(_ text: String?, of option: String) throws(Failure) -> Number {
    let text = try value(text, of: option)
    guard let number = Number(text), number >= 0 else {
      throw Failure(message: "\(option) wants a number, not \(text)")
    }
    return number
  }
}
