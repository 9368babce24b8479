// SPDX-License-Identifier: Apache-2.0

// Foundation's run loop API on Linux. The sections are compiled with Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: RunLoop: the loops
func loops() -> Bool {
  let current: RunLoop = RunLoop.current
  let main: RunLoop = .main
  return current == main || current === main || Set([current, main]).contains(current)
}

// MARK: RunLoop: runs
func runs() -> Bool {
  let loop = RunLoop.current
  loop.run()
  loop.run(until: Date(timeIntervalSinceNow: 1))
  loop.run(until: .distantPast)
  var isRunning = true
  while isRunning && loop.run(mode: .default, before: .distantFuture) { isRunning = false }
  return loop.run(mode: RunLoop.Mode.default, before: Date() + 0.1)
}

// MARK: RunLoop: a run whose result nobody wants
func runAndForget() {
  RunLoop.current.run(mode: .default, before: Date.distantPast)
  _ = RunLoop.main.run(mode: .common, before: Date(timeIntervalSinceReferenceDate: 0))
}

// MARK: RunLoop: input
func input() {
  let loop = RunLoop.current
  loop.acceptInput(forMode: "mode", before: .distantPast)
  loop.acceptInput(forMode: RunLoop.Mode.default.rawValue, before: Date())
  let limit: Date? = loop.limitDate(forMode: .default)
  print(limit ?? .distantFuture)
}

// MARK: RunLoop: input in a mode that is spelled as on Apple's systems
func inputInMode() {
  RunLoop.current.acceptInput(forMode: .default, before: .distantPast)
}

// MARK: RunLoop: the current mode
func currentMode() -> Bool {
  let mode: RunLoop.Mode? = RunLoop.current.currentMode
  return mode == .default || mode == nil || RunLoop.main.currentMode == .common
}

// MARK: RunLoop: timers and ports
func items(port: Port) {
  let loop = RunLoop.current
  let timer = Timer(timeInterval: 1, repeats: true) { $0.invalidate() }
  loop.add(timer, forMode: .default)
  loop.add(timer, forMode: RunLoop.Mode.common)
  loop.add(timer, forMode: RunLoop.Mode("mine"))
  loop.add(port, forMode: .default)
  loop.remove(port, forMode: .default)
}

// MARK: RunLoop: blocks
func blocks() {
  RunLoop.main.perform { print("on the main thread") }
  RunLoop.main.perform(inModes: [.default, .common]) { print("on the main thread") }
  RunLoop.current.perform(inModes: [RunLoop.Mode("mine")], block: { print("here") })
  let block: @Sendable () -> Void = {}
  RunLoop.current.perform(block)
}

// MARK: RunLoop: modes
extension RunLoop.Mode {
  static let mine = RunLoop.Mode("mine")
  static let also: RunLoop.Mode = .init(rawValue: "also")
}

func modes(_ name: String) -> [String] {
  let all: Set<RunLoop.Mode> = [.default, .common, .mine, .also, RunLoop.Mode(name)]
  func text(_ mode: some RawRepresentable<String> & Hashable & Sendable) -> String { mode.rawValue }
  return all.map(\.rawValue) + [text(RunLoop.Mode.default)]
}

// MARK: RunLoop: modes that only Apple's systems have
func otherModes() -> [RunLoop.Mode] { [.tracking] }

// MARK: RunLoop: what is printed of it
func loopText() -> String { "\(RunLoop.current) \(RunLoop.main.description) \(RunLoop.main.debugDescription)" }

// MARK: RunLoop: as an object
func loopObject() -> Bool { RunLoop.main.isEqual(RunLoop.current) && RunLoop.main.hash == RunLoop.current.hashValue }

// MARK: RunLoop: for another thread
func hand(to queue: DispatchQueue) {
  let loop = RunLoop.current
  queue.async { loop.perform { print("from another thread") } }
}

// MARK: RunLoop: in a task
func loopInTask() async {
  let loop = RunLoop.main
  let task = Task {
    loop.perform { print("from a task") }
    loop.perform { print("again") }
  }
  await task.value
}

// MARK: RunLoop: stored in an actor
actor Holder {
  let loop: RunLoop
  init(_ loop: RunLoop) { self.loop = loop }
  nonisolated func post() { loop.perform {} }
}

// MARK: RunLoop: a global variable
let globalLoop = RunLoop.main

// MARK: RunLoop: a subclass
class Circle: RunLoop {
  override var currentMode: RunLoop.Mode? { nil }
}
