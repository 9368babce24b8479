// SPDX-License-Identifier: Apache-2.0

/// The parsed arguments of the tool.
struct ConformanceArguments: Equatable {
  enum Task: Equatable {
    case help
    case series
    /// Shows one program of the series, with its logs.
    case show(Int)
    /// Shows a program from a file, with its logs.
    case read(String)
    /// Writes the page of the rules' logs to a file, or compares it.
    case page(String, check: Bool)
    /// Writes the other pages and the names of the rules to a project's directory, or compares them.
    case rules(String, check: Bool)
  }

  var task = Task.series
  /// The seed; nil for a random one.
  var seed: UInt64?
  var programs = 2000
  /// The number of threads; nil for the number of processors.
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
