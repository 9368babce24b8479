// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import RunLoopCore
@testable import RunLoopKit
import TestSupport
import XCTest

/// The fairness of both main loops when several kinds of work never end, whichever loop runs.
///
/// Core Foundation's items are one kind among this package's. Requires the real main thread, which serves the main
/// queue.
final class HostedFairnessTests: XCTestCase {
  // M19, M32
  func testEachClassIsServedWithinFourTimesAsManyPassesAsThereAreReadyClasses() {
    for way in Way.allCases {
      for bits in 1..<(1 << Kind.allCases.count) {
        let kinds = Kind.allCases.filter { bits & 1 << $0.rawValue != 0 }
        let mix = Mix(kinds)
        way.run(mix)
        mix.end()
        XCTAssertEqual(mix.starved, [], "\(kinds) by \(way): \(mix.counts)")
      }
    }
  }
}

private enum Way: CaseIterable {
  case ours, oursAfterSource, coreFoundation, coreFoundationAfterSource, coreFoundationPolling

  func run(_ mix: Mix) {
    let loop = RunLoop.main
    while !mix.isOver {
      switch self {
      case .ours: loop.run(mode: .default, for: .unlimited)
      case .oursAfterSource: loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true)
      case .coreFoundation: CFRunLoopRunInMode(RunLoop.Mode.default.coreFoundationMode, 1e9, false)
      case .coreFoundationAfterSource: CFRunLoopRunInMode(RunLoop.Mode.default.coreFoundationMode, 1e9, true)
      case .coreFoundationPolling: CFRunLoopRunInMode(RunLoop.Mode.default.coreFoundationMode, 0, true)
      }
    }
  }
}

private enum Kind: Int, CaseIterable {
  case timers, ports, descriptors, mainQueue, sources, blocks, coreFoundation
}

/// Items of both loops that are ready in every pass, with the number of times that each kind was served.
private final class Mix: @unchecked Sendable {
  // Sendable: used only on the main thread.

  private let kinds: [Kind]
  private let passes: Int
  private var pass = 0
  private(set) var counts: [Kind: Int] = [:]
  private(set) var isOver = false
  private var clean: [() -> Void] = []

  init(_ kinds: [Kind]) {
    self.kinds = kinds
    passes = 16 * kinds.count
    // Counts a pass of either loop, because each is served in the other's passes.
    let observer = RunLoop.Observer(activities: .beforeTimers) { [unowned self] _, _ in countPass() }
    RunLoop.main.add(observer, forMode: .default)
    let other = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.beforeTimers.rawValue, true, 0) {
      [unowned self] _, _ in countPass()
    }
    CFRunLoopAddObserver(CFRunLoopGetMain(), other, RunLoop.Mode.default.coreFoundationMode)
    clean = [observer.invalidate, { CFRunLoopObserverInvalidate(other) }]
    for kind in kinds { add(kind) }
  }

  /// The kinds served less than once per four passes for each of the kinds.
  ///
  /// Passes are counted twice where one loop makes a pass within the other's.
  var starved: [Kind] { kinds.filter { counts[$0, default: 0] < passes / (8 * kinds.count) } }

  func end() {
    isOver = true
    for item in clean { item() }
    for _ in 0..<8 {
      RunLoop.main.run(mode: .default, for: .zero)
      CFRunLoopRunInMode(RunLoop.Mode.default.coreFoundationMode, 0, false)
    }
  }

  private func countPass() {
    pass += 1
    guard pass > 2 * passes else { return }
    isOver = true
    RunLoop.main.stop()
    CFRunLoopStop(CFRunLoopGetMain())
  }

  private func note(_ kind: Kind) { counts[kind, default: 0] += 1 }

  private func add(_ kind: Kind) {
    let loop = RunLoop.main
    switch kind {
    case .timers:
      let timer = Timer(fire: .distantPast, interval: 1, repeats: true) { [unowned self] timer in
        note(kind)
        timer.fireDate = .distantPast
      }
      loop.add(timer, forMode: .default)
      clean.append(timer.invalidate)
    case .ports:
      let port = Port { [unowned self] port, _ in
        note(kind)
        try? port.send(Port.Message())
      }
      loop.add(port, forMode: .default)
      try? port.send(Port.Message())
      clean.append(port.invalidate)
    case .descriptors:
      guard let pipe = try? RawPipe() else { return XCTFail("no pipe") }
      pipe.write()
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { [unowned self] _, _ in
        note(kind)
      }
      XCTAssertNoThrow(try loop.add(source, forMode: .default))
      clean.append {
        source.invalidate()
        pipe.closeReading()
      }
    case .mainQueue: queueAgain()
    case .sources:
      let source = RunLoop.Source { [unowned self] source in
        note(kind)
        source.signal()
      }
      loop.add(source, forMode: .default)
      source.signal()
      clean.append(source.invalidate)
    case .blocks: performAgain()
    case .coreFoundation:
      let item = SelfSignalling { [unowned self] in note(kind) }
      clean.append(item.invalidate)
    }
  }

  private func queueAgain() {
    DispatchQueue.main.async { [self] in
      guard !isOver else { return }
      note(.mainQueue)
      queueAgain()
    }
  }

  private func performAgain() {
    RunLoop.main.perform { [self] in
      guard !isOver else { return }
      note(.blocks)
      performAgain()
    }
  }
}

/// A Core Foundation source that signals itself each time.
private final class SelfSignalling {
  private let body: () -> Void
  private var source: CFRunLoopSource?

  init(_ body: @escaping () -> Void) {
    self.body = body
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in
      guard let info else { return }
      let item = Unmanaged<SelfSignalling>.fromOpaque(info).takeUnretainedValue()
      item.body()
      CFRunLoopSourceSignal(item.source)
    }
    source = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(CFRunLoopGetMain(), source, RunLoop.Mode.default.coreFoundationMode)
    CFRunLoopSourceSignal(source)
  }

  func invalidate() { CFRunLoopSourceInvalidate(source) }
}
