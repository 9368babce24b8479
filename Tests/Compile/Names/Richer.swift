// SPDX-License-Identifier: Apache-2.0

// Code that uses results that RunLoopKit returns and Foundation does not. With Foundation alone, none of it is
// compiled.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Richer: whether the loop took it
#if canImport(RunLoopKit)
  func isTaken(_ timer: Timer, _ port: Port) -> Bool {
    let loop = RunLoop.main
    guard loop.add(timer, forMode: .common), loop.add(port, forMode: .default) else { return false }
    if !loop.perform(inModes: [.common], block: {}) { return false }
    let isPosted: Bool = loop.perform {}
    let all = [timer].allSatisfy { loop.add($0, forMode: .common) }
    let results: [Bool] = [timer].map { loop.add($0, forMode: .default) }
    let adds: (Timer, RunLoop.Mode) -> Bool = loop.add
    while loop.perform({}) && !adds(timer, .common) {}
    return loop.perform {} ? isPosted && all && results == [true] : (loop.perform {} as Bool)
  }

  func isTaken(_ timer: Foundation.Timer, _ port: SocketPort) -> Bool {
    RunLoop.main.add(timer, forMode: .common) && RunLoop.main.add(port, forMode: .common)
  }

  protocol Accepting {
    func add(_ timer: Timer, forMode mode: RunLoop.Mode) -> Bool
    func add(_ port: Port, forMode mode: RunLoop.Mode) -> Bool
    func perform(_ block: @escaping @Sendable () -> Void) -> Bool
    func perform(inModes modes: [RunLoop.Mode], block: @escaping @Sendable () -> Void) -> Bool
  }

  extension RunLoop: Accepting {}
#endif

// MARK: Richer: an exit that the compiler knows
#if canImport(RunLoopKit)
  func leaveNow() -> Never { Thread.exit() }

  func leaveOr(_ value: Int?) -> Int {
    guard let value else { Thread.exit() as Never }
    return value
  }

  let leaving: @Sendable () -> Never = { Thread.exit() }
#endif

// MARK: Richer: loops, timers, threads and ports have the protocol of objects
#if canImport(RunLoopKit)
  func protocolObjects(_ timer: Timer, _ port: Port) -> [any NSObjectProtocol] {
    let objects: [any NSObjectProtocol] = [RunLoop.main, timer, Thread.current, port]
    return objects.filter { !$0.isProxy() && $0.isEqual($0.`self`()) }
  }
#endif
