// SPDX-License-Identifier: Apache-2.0

@testable import RunLoopCore

/// An item of any kind that can be in several modes, for tests that treat all kinds alike.
enum AnyItem: Sendable {
  case source(RunLoop.Source)
  case timer(Timer)
  case observer(RunLoop.Observer)
  case port(Port)

  /// Creates an item without effect, whose kind depends on the number.
  init(_ number: Int) {
    switch number % 4 {
    case 0: self = .source(RunLoop.Source {})
    // Too late to fire.
    case 1: self = .timer(Timer(timeInterval: 1e6, repeats: true) { _ in })
    case 2: self = .observer(RunLoop.Observer(activities: .all, order: number % 3) { _, _ in })
    default: self = .port(Port { _, _ in })
    }
  }

  var object: any ModeItem {
    switch self {
    case .source(let source): source
    case .timer(let timer): timer
    case .observer(let observer): observer
    case .port(let port): port
    }
  }

  /// Whether it keeps a mode alive.
  var counts: Bool {
    if case .observer = self { false } else { true }
  }

  @discardableResult
  func add(to loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    switch self {
    case .source(let source): loop.add(source, forMode: mode)
    case .timer(let timer): loop.add(timer, forMode: mode)
    case .observer(let observer): loop.add(observer, forMode: mode)
    case .port(let port): loop.add(port, forMode: mode)
    }
  }

  func remove(from loop: RunLoop, _ mode: RunLoop.Mode) {
    switch self {
    case .source(let source): loop.remove(source, forMode: mode)
    case .timer(let timer): loop.remove(timer, forMode: mode)
    case .observer(let observer): loop.remove(observer, forMode: mode)
    case .port(let port): loop.remove(port, forMode: mode)
    }
  }

  func isIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    switch self {
    case .source(let source): loop.contains(source, forMode: mode)
    case .timer(let timer): loop.contains(timer, forMode: mode)
    case .observer(let observer): loop.contains(observer, forMode: mode)
    case .port(let port): loop.contains(port, forMode: mode)
    }
  }

  func invalidate() {
    switch self {
    case .source(let source): source.invalidate()
    case .timer(let timer): timer.invalidate()
    case .observer(let observer): observer.invalidate()
    case .port(let port): port.invalidate()
    }
  }
}
