// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import TestRules
import TestSupport
import Testing

/// Pairs of first uses of the main loops, each pair in a new process, because only the first use in a process counts.
///
/// By default, this is a sample in which each use is first once and second once, with each way of running. With
/// `RUNLOOP_FIRST_USES=all` in the environment, all pairs are tested. Prints a table with a line per pair.
@Suite("The first uses of the main loops", .timeLimit(.minutes(30)))
struct FirstUseTests {
  static let isComplete = ProcessInfo.processInfo.environment["RUNLOOP_FIRST_USES"] == "all"

  @Test("whatever the main thread uses first, every way of running serves each item", .rule(.m32))
  func oneThread() throws {
    let table = try FirstUseTable()
    table.fill(pairs: table.pairs(all: Self.isComplete, factor: 5), delays: [nil])
    print(table.text)
    #expect(table.failures == [])
  }

  @Test(
    "a second thread's first use of the main loop, up to 2 ms later, neither crashes nor loses items",
    .rule(.m32))
  func twoThreads() throws {
    let table = try FirstUseTable()
    table.fill(
      pairs: table.pairs(all: Self.isComplete, factor: 7), delays: [0, 25, 50, 100, 250, 500, 1000, 1500, 2000],
      rounds: Self.isComplete ? 3 : 1)
    print(table.text)
    #expect(table.failures == [])
  }
}

/// The outcomes of all pairs, with each way of running.
private final class FirstUseTable: Sendable {
  typealias Pair = (first: String, second: String)

  let uses: [String]
  let ways: [String]
  private let cells = Box<[String: [String: String]]>([:])
  private let order = Box<[String]>([])

  init() throws {
    let names = try runProgram("main-loops", ["names"]).output.split(separator: "\n").map {
      $0.split(separator: " ").map(String.init)
    }
    try #require(names.count == 2)
    (uses, ways) = (names[0], names[1])
  }

  /// Returns all pairs, or one pair per use.
  func pairs(all: Bool, factor: Int) -> [Pair] {
    uses.indices.flatMap { first in
      (all ? Array(uses.indices) : [(first * factor + 2) % uses.count]).map { (uses[first], uses[$0]) }
    }
  }

  /// Runs a process per pair and way, cycling through the delays.
  func fill(pairs: [Pair], delays: [Int?], rounds: Int = 1) {
    order.value = pairs.map { "\($0.first) \($0.second)" }
    let total = pairs.count * ways.count
    let next = Counter()
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      while true {
        let number = next.add() - 1
        guard number < total * rounds else { return }
        let (pair, way) = (pairs[number % total / ways.count], ways[number % ways.count])
        let delay = delays[number * 31 / 7 % delays.count]
        note(pair, way, outcome(of: pair, way, delay), delay)
      }
    }
  }

  private func outcome(of pair: Pair, _ way: String, _ delay: Int?) -> String {
    do {
      let (status, output) = try runProgram(
        "main-loops", ["first", pair.first, pair.second, way] + (delay.map { ["\($0)"] } ?? []))
      switch status {
      case 0: return "ok"
      case -SIGALRM: return "LOST"
      case ..<0: return "CRASH(\(-status))"
      default: return "WRONG(\(output.prefix { $0 != "\n" }))"
      }
    } catch {
      return "\(error)"
    }
  }

  private func note(_ pair: Pair, _ way: String, _ outcome: String, _ delay: Int?) {
    let text = outcome == "ok" ? outcome : outcome + (delay.map { "@\($0)" } ?? "")
    cells.update { cells in
      let former = cells["\(pair.first) \(pair.second)"]?[way]
      // A failure stays in the table.
      if former == nil || former == "ok" { cells["\(pair.first) \(pair.second)", default: [:]][way] = text }
    }
  }

  var text: String {
    let head = "first use, second use".padding(toLength: 34, withPad: " ", startingAt: 0) + ways.joined(separator: " ")
    let lines = order.value.map { pair in
      pair.padding(toLength: 34, withPad: " ", startingAt: 0)
        + ways.map { way in
          let cell = cells.value[pair]?[way] ?? ""
          return cell.padding(toLength: max(way.count, cell.count), withPad: " ", startingAt: 0)
        }.joined(separator: " ")
    }
    return ([head] + lines).joined(separator: "\n")
  }

  var failures: [String] {
    order.value.flatMap { pair in
      ways.compactMap { way in
        let cell = cells.value[pair]?[way] ?? "not run"
        return cell == "ok" ? nil : "\(pair) \(way): \(cell)"
      }
    }
  }
}
