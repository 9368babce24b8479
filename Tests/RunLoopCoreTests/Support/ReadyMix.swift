// SPDX-License-Identifier: Apache-2.0

import Dispatch
import TestSupport

@testable import RunLoopCore

/// Kinds of work that can be ready in every pass.
enum ReadyKind: Int, CaseIterable, Sendable {
  case timers, ports, descriptors, mainQueue, sources, blocks, handOffs, jobs
}

/// Items that are ready in every pass, two of each kind, and the passes in which each was served; for use on the
/// loop's thread.
final class ReadyMix: @unchecked Sendable {
  // Sendable: used only on the loop's thread.

  let loop: RunLoop
  let kinds: [ReadyKind]
  private let passes: Int
  private var pass = 0
  /// The passes in which each item was served, indexed by kind and number.
  private var served: [[Int]]
  private(set) var isOver = false
  private var clean: [() -> Void] = []

  /// The largest allowed number of passes without service of a kind.
  var bound: Int { 4 * kinds.count }

  init(_ kinds: [ReadyKind], on loop: RunLoop, passes: Int? = nil) {
    self.loop = loop
    self.kinds = kinds
    self.passes = passes ?? 6 * kinds.count
    served = Array(repeating: [], count: 2 * ReadyKind.allCases.count)
  }

  func begin() {
    let observer = RunLoop.Observer(activities: .beforeTimers) { [unowned self] _, _ in
      pass += 1
      guard pass > passes else { return }
      isOver = true
      loop.stop()
    }
    loop.add(observer, forMode: .default)
    clean.append(observer.invalidate)
    for kind in kinds { for number in 0...1 { add(kind, number) } }
  }

  /// Removes the items; work that they already posted still runs, but posts nothing.
  func end() {
    isOver = true
    for item in clean { item() }
    clean = []
    for _ in 0..<8 { loop.run(mode: .default, for: .zero) }
  }

  /// The items that were served too rarely.
  var complaints: [String] {
    var found: [String] = []
    for kind in kinds {
      let items = (0...1).map { served[2 * kind.rawValue + $0] }
      let all = gaps(Array(Set(items[0] + items[1])).sorted())
      if all > bound { found.append("\(kind) not served within \(all) passes") }
      for (number, item) in items.enumerated() where gaps(item) > 2 * bound {
        found.append("\(kind) \(number) not served within \(gaps(item)) passes")
      }
    }
    return found
  }

  /// A line with the mix, and the number of passes that served each of its kinds.
  var row: String {
    let shares = kinds.map { kind in
      "\(kind) \(Set(served[2 * kind.rawValue] + served[2 * kind.rawValue + 1]).count)"
    }
    let timer = gaps(Array(Set(served[0] + served[1])).sorted())
    return shares.joined(separator: ", ") + "; \(timer)"
  }

  /// The most passes between two services, where the beginning and end of the count also count as services.
  private func gaps(_ passes: [Int]) -> Int {
    var longest = 0
    var last = 0
    for pass in passes + [self.passes + 1] {
      longest = max(longest, pass - last)
      last = pass
    }
    return longest
  }

  private func note(_ kind: ReadyKind, _ number: Int) { served[2 * kind.rawValue + number].append(pass) }

  private func add(_ kind: ReadyKind, _ number: Int) {
    switch kind {
    case .timers:
      let timer = Timer(deadline: loop.now, interval: .seconds(1)) { [unowned self] timer in
        note(kind, number)
        timer.deadline = loop.now
      }
      loop.add(timer, forMode: .default)
      clean.append(timer.invalidate)
    case .ports:
      let port = Port { [unowned self] port, _ in
        note(kind, number)
        try? port.send(Port.Message())
      }
      loop.add(port, forMode: .default)
      try? port.send(Port.Message())
      clean.append(port.invalidate)
    case .descriptors:
      guard let pipe = try? RawPipe() else { preconditionFailure("no pipe") }
      pipe.write()
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { [unowned self] _, _ in
        note(kind, number)
      }
      try? loop.add(source, forMode: .default)
      clean.append {
        source.invalidate()
        pipe.closeReading()
      }
    case .mainQueue: number == 0 ? queueAgain() : beginMainActorTask()
    case .sources:
      // The orders differ, so that a run that returns after a source must also care for the later one.
      let source = RunLoop.Source(order: number - 1) { [unowned self] source in
        note(kind, number)
        source.signal()
      }
      loop.add(source, forMode: .default)
      source.signal()
      clean.append(source.invalidate)
    case .blocks: performAgain(number)
    case .handOffs: handOffAgain(number)
    case .jobs:
      Task(executorPreference: LoopExecutor(loop)) { [self] in
        while !isOver {
          note(kind, number)
          await Task.yield()
        }
      }
    }
  }

  private func queueAgain() {
    DispatchQueue.main.async { [self] in
      guard !isOver else { return }
      note(.mainQueue, 0)
      queueAgain()
    }
  }

  /// Starts a new task each time, because a task that yields leaves the main actor for the pool and is not always
  /// ready.
  private func beginMainActorTask() {
    Task { @MainActor [self] in
      guard !isOver else { return }
      note(.mainQueue, 1)
      beginMainActorTask()
    }
  }

  private func performAgain(_ number: Int) {
    loop.perform { [self] in
      guard !isOver else { return }
      note(.blocks, number)
      performAgain(number)
    }
  }

  private func handOffAgain(_ number: Int) {
    _ = loop.handOff(inModes: [.default]) { [self] in
      guard !isOver else { return }
      note(.handOffs, number)
      handOffAgain(number)
    }
  }
}
