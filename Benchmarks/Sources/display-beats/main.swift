// SPDX-License-Identifier: Apache-2.0

// Shows a screen that changes with each beat of a 60 Hz timer, on its terminal. The key `b` writes the number of
// beats so far and the nanoseconds of the monotonic clock to descriptor 3; `q` quits.
//
//     display-beats [--still]        --still: without the timer, so that nothing happens

import Glibc
import RunLoopCore
import RunLoopDisplay

/// A screen full of letters, different in each frame.
final class Letters: Window {
  private static let letters: [Character] = Array("abcdefghijklmnopqrstuvwxyz")
  private var state: UInt64 = 0x9E37_79B9_7F4A_7C15
  var beats = 0

  override var drawsContents: Bool { true }

  override func draw(_ canvas: inout Canvas) {
    for y in 0..<bounds.size.height {
      for x in 0..<bounds.size.width {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        canvas.fill(Rect(x: x, y: y, width: 1, height: 1), Self.letters[Int(state % 26)])
      }
    }
  }

  override func keyPressed(_ key: KeyEvent) {
    switch key.key {
    case .character("b"):
      var now = timespec()
      clock_gettime(CLOCK_MONOTONIC, &now)
      var line = "\(beats) \(now.tv_sec * 1_000_000_000 + now.tv_nsec)\n"
      line.withUTF8 { _ = write(3, $0.baseAddress, $0.count) }
    case .character("q"): application?.terminate()
    default: super.keyPressed(key)
    }
  }
}

let window = Letters()
if !CommandLine.arguments.contains("--still") {
  let timer = RunLoop.main.schedule(in: .nanoseconds(16_666_667), repeating: .nanoseconds(16_666_667)) { _ in
    MainActor.assumeIsolated {
      window.beats += 1
      window.setNeedsDisplay()
    }
  }
  RunLoop.main.add(timer, forMode: .common)
}
do {
  try Application(device: Terminal(), window: window).run()
} catch {
  print("display-beats: \(error)")
  exit(1)
}
