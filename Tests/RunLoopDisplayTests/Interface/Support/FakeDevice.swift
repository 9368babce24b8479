// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport

@testable import RunLoopDisplay

/// A test's device, whose input comes through a pipe and a source 1 of the main loop, and which keeps its frames.
@MainActor
final class FakeDevice: DisplayDevice {
  var size: Size
  weak var client: (any DisplayDeviceClient)?
  var isReadyForFrame = true
  private(set) var shown = Grid(size: .zero)
  private(set) var presentations = 0
  private(set) var scrolls: [ScrollHint] = []
  private(set) var isOpen = false
  private(set) var repaints = 0
  private(set) var suspensions = 0
  var failure: DisplayError?
  private let pipe: RawPipe
  private var source: RunLoop.DescriptorSource?
  private var reads: [[InputEvent]] = []

  init(width: Int = 40, height: Int = 10) {
    size = Size(width: width, height: height)
    do { pipe = try RawPipe() } catch { fatalError("\(error)") }
  }

  func open() throws(DisplayError) {
    if let failure { throw failure }
    isOpen = true
    let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { [weak self] _, _ in
      MainActor.assumeIsolated { self?.read() }
    }
    self.source = source
    do {
      try RunLoop.main.add(source, forMode: .common)
      try RunLoop.main.add(source, forMode: .eventReceive)
    } catch { fatalError("\(error)") }
  }

  func close() {
    isOpen = false
    source?.invalidate()
  }

  func suspend() {
    suspensions += 1
    client?.deviceWillSuspend(self)
  }

  func resume() { client?.deviceDidResume(self) }

  func present(_ grid: borrowing Grid, scrolls: [ScrollHint]) -> Int {
    precondition(isOpen && isReadyForFrame && grid.size == size)
    self.scrolls = scrolls
    presentations += 1
    var changed = grid.size == shown.size ? 0 : 1
    if changed == 0 {
      for y in 0..<size.height { for x in 0..<size.width where grid[x, y] != shown[x, y] { changed += 1 } }
    }
    shown = copy grid
    return changed
  }

  func repaint() {
    repaints += 1
    shown = Grid(size: .zero)
  }

  /// Sends events that a single read returns.
  func send(_ events: InputEvent...) { send(events) }

  func send(_ events: [InputEvent]) {
    reads.append(events)
    pipe.write()
  }

  /// Ends a frame that was under way.
  func becomeReady() {
    isReadyForFrame = true
    client?.deviceIsReadyForFrame(self)
  }

  private func read() {
    pipe.read(1)
    let events = reads.removeFirst()
    if case .resize(let size)? = events.last { self.size = size }
    client?.device(self, didRead: events.count, events: events)
  }

  var text: String {
    var rows = (0..<shown.size.height).map { shown.text(row: $0) }
    while rows.last == "" { rows.removeLast() }
    return rows.joined(separator: "\n")
  }
}
