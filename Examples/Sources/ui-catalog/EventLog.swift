// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopDisplay

/// A log of events, one on each line.
@MainActor
final class EventLog: ApplicationTrace {
  private var lines: [String] = []
  private let file: UnsafeMutablePointer<FILE>

  /// Nil, with the reason in `errno`, if the file cannot be written.
  init?(path: String) {
    guard let file = fopen(path, "we") else { return nil }
    self.file = file
  }

  func applicationDid(_ step: ApplicationStep) { lines.append(line(step)) }

  func write(_ line: String) { lines.append(line) }

  /// Writes the file; returns false, with the reason in `errno`, on failure.
  func close() -> Bool {
    for line in lines { fputs("\(line)\n", file) }
    return fclose(file) == 0
  }

  private func line(_ step: ApplicationStep) -> String {
    switch step {
    case .stage(let activity, let mode): "\(name(activity)) \(mode.shortName)"
    case .source1(let bytes): "source1 \(bytes)"
    case .source0(let events): "source0 \(events)"
    case .touches(let phase, let view): "\(name(phase)) \(view)"
    case .gesture(let state): "gesture \(state)"
    case .action(let name, let state): "action \(name) \(state)"
    case .resize(let size): "resize \(size.width) \(size.height)"
    case .layout: "layout"
    case .draw: "draw"
    case .commit(let bytes): "commit \(bytes)"
    }
  }

  private func name(_ activity: RunLoop.Activity) -> String {
    switch activity {
    case .entry: "entry"
    case .beforeWaiting: "beforeWaiting"
    case .afterWaiting: "afterWaiting"
    default: "exit"
    }
  }

  private func name(_ phase: Touch.Phase) -> String {
    switch phase {
    case .began: "touchesBegan"
    case .moved: "touchesMoved"
    case .ended: "touchesEnded"
    case .cancelled: "touchesCancelled"
    }
  }
}

extension RunLoop.Mode {
  /// The name on the screen and in the log.
  var shortName: String {
    switch self {
    case .default: "default"
    case .tracking: "tracking"
    default: rawValue
    }
  }
}
