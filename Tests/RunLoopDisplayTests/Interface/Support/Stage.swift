// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import TestSupport

@testable import RunLoopDisplay

/// An application on the test's device, whose main loop runs on virtual time.
@MainActor
final class Stage: ApplicationTrace {
  let time: VirtualTime
  let device: FakeDevice
  let window: Window
  let application: Application
  let log = Log()
  var logged: (ApplicationStep) -> Bool = { _ in true }

  /// Runs a test's body on the main actor's thread, as if it were the main thread.
  static func perform(
    width: Int = 40, height: Int = 10, window: Window? = nil, frameInterval: Duration = .seconds(1) / 60,
    _ body: (Stage) throws -> Void
  ) throws {
    try VirtualTime.asMain { time in
      let stage = Stage(time, FakeDevice(width: width, height: height), window ?? Window(), frameInterval)
      try body(stage)
    }
  }

  private init(_ time: VirtualTime, _ device: FakeDevice, _ window: Window, _ interval: Duration) {
    self.time = time
    self.device = device
    self.window = window
    application = Application(device: device, window: window, frameInterval: interval)
    application.trace = self
  }

  /// Performs an action at a time in milliseconds, while the loop sleeps.
  func at(_ milliseconds: Int, _ body: @escaping @MainActor @Sendable () -> Void) {
    time.at(.milliseconds(milliseconds)) { MainActor.assumeIsolated { body() } }
  }

  /// Sends events at a given time, to be read together.
  func send(_ events: InputEvent..., at milliseconds: Int) {
    at(milliseconds) { self.device.send(events) }
  }

  /// Runs the application until a time in milliseconds.
  @discardableResult
  func run(until milliseconds: Int) throws -> Application.End {
    at(milliseconds) { self.application.terminate() }
    return try application.run()
  }

  /// The log since the first frame was shown, which takes no time.
  func record(until milliseconds: Int) throws -> String {
    at(0) { self.log.clear() }
    at(milliseconds) { self.log.write("END") }
    try run(until: milliseconds)
    return log.text.components(before: " END")
  }

  func applicationDid(_ step: ApplicationStep) {
    if logged(step) { log.write(step.word) }
  }
}

extension String {
  fileprivate func components(before other: String) -> String {
    var rest = self[...]
    while !rest.isEmpty, !rest.hasPrefix(other) { rest = rest.dropFirst() }
    return String(dropLast(rest.count))
  }
}

extension ApplicationStep {
  /// The name of the step in test logs.
  var word: String {
    switch self {
    case .stage(let activity, let mode):
      mode == .default ? activity.letter : "\(activity.letter)(\(mode == .tracking ? "tracking" : mode.rawValue))"
    case .source1: "S1"
    case .source0(let events): "S0:\(events)"
    case .touches(let phase, let view): "\(phase)(\(view))"
    case .gesture(let state): "gesture:\(state)"
    case .action(let name, let state): "action:\(name):\(state)"
    case .resize(let size): "resize:\(size.width)x\(size.height)"
    case .layout: "layout"
    case .draw(let views): views == 1 ? "draw" : "draw:\(views)"
    case .commit(let bytes): bytes == 0 ? "commit:0" : "commit"
    }
  }
}

extension InputEvent {
  static func press(_ x: Int, _ y: Int, _ button: MouseEvent.Button = .left) -> InputEvent {
    .mouse(MouseEvent(.press(button), at: Point(x: x, y: y)))
  }
  static func drag(_ x: Int, _ y: Int, _ button: MouseEvent.Button = .left) -> InputEvent {
    .mouse(MouseEvent(.drag(button), at: Point(x: x, y: y)))
  }
  static func release(_ x: Int, _ y: Int, _ button: MouseEvent.Button = .left) -> InputEvent {
    .mouse(MouseEvent(.release(button), at: Point(x: x, y: y)))
  }
  static func wheel(_ wheel: MouseEvent.Wheel, _ x: Int, _ y: Int) -> InputEvent {
    .mouse(MouseEvent(.wheel(wheel), at: Point(x: x, y: y)))
  }
  static func type(_ key: KeyEvent.Key, _ modifiers: KeyModifiers = []) -> InputEvent {
    .key(KeyEvent(key, modifiers: modifiers))
  }
  static func size(_ width: Int, _ height: Int) -> InputEvent { .resize(Size(width: width, height: height)) }
}
