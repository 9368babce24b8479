// SPDX-License-Identifier: Apache-2.0

// A game's frame loop that leaves part of each frame to the main loop: tasks of the main actor, timers, and the main
// dispatch queue. It uses SDL if installed (SDL_VIDEODRIVER=dummy needs no screen).
//
//     swift run --package-path Examples game-frames [FRAMES]

import Dispatch
import Glibc
import RunLoopCore

/// The functions of SDL 2 or 3 that a frame loop calls.
struct SDL {
  private let pollEvent: @convention(c) (UnsafeMutableRawPointer) -> CBool
  private let delay: @convention(c) (UInt32) -> Void
  let version: Int

  /// Opens a window; nil if there is no SDL or no screen.
  init?(title: String) {
    let files: [(Int, String)] = [(3, "libSDL3.so.0"), (2, "libSDL2-2.0.so.0")]
    let found = files.lazy.compactMap { version, file in
      dlopen(file, RTLD_NOW).map { (version, $0) }
    }.first
    guard let (version, library) = found else { return nil }
    func function<Function>(_ name: String) -> Function { unsafeBitCast(dlsym(library, name), to: Function.self) }
    self.version = version
    pollEvent = function("SDL_PollEvent")
    delay = function("SDL_Delay")
    // SDL_INIT_VIDEO. SDL 2 returns zero for success, SDL 3 true.
    let begin: @convention(c) (UInt32) -> Int32 = function("SDL_Init")
    guard (begin(0x20) & 0xff == 0) == (version == 2) else { return nil }
    let window: OpaquePointer?
    if version == 2 {
      typealias Create = @convention(c) (UnsafePointer<CChar>, Int32, Int32, Int32, Int32, UInt32) -> OpaquePointer?
      window = (function("SDL_CreateWindow") as Create)(title, 0, 0, 320, 240, 0)
    } else {
      typealias Create = @convention(c) (UnsafePointer<CChar>, Int32, Int32, UInt64) -> OpaquePointer?
      window = (function("SDL_CreateWindow") as Create)(title, 320, 240, 0)
    }
    guard window != nil else { return nil }
  }

  /// Handles pending events, and returns whether the program should quit.
  func takeEvents() -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 128, alignment: 16) { event in
      guard let address = event.baseAddress else { return false }
      while pollEvent(address) {
        if address.load(as: UInt32.self) == 0x100 { return true }
      }
      return false
    }
  }

  func wait(milliseconds: UInt32) { delay(milliseconds) }
}

@MainActor final class Game {
  private let budget = Duration.milliseconds(2)
  private let sdl = SDL(title: "frames")
  private let guest: RunLoop.Guest
  private(set) var framesWithRest = 0
  private var ticks = 0
  private var isOver = false

  init() throws {
    guest = try RunLoop.Guest()
    print(sdl.map { "with SDL \($0.version)" } ?? "without SDL")
    RunLoop.main.schedule(in: .milliseconds(50), repeating: .milliseconds(50)) { _ in
      MainActor.assumeIsolated { self.ticks += 1 }
    }
    // More work than fits in one frame.
    DispatchQueue.global().async { for _ in 0..<100 { RunLoop.main.perform { usleep(200) } } }
    Task {
      try await Task.sleep(for: .milliseconds(100))
      let sum = await Task.detached { (1...1000).reduce(0, +) }.value
      print("a task says \(sum)")
      isOver = true
    }
  }

  func play(frames: Int) {
    var frame = 0
    while (frame < frames || !isOver) && sdl?.takeEvents() != true {
      let next = ContinuousClock.now + .milliseconds(16)
      // After the game's own work, the loop gets the rest of the frame.
      if !guest.service(for: budget).isDone { framesWithRest += 1 }
      frame += 1
      let left = max(.zero, next - .now)
      let milliseconds = UInt32(left / .milliseconds(1))
      if let sdl { sdl.wait(milliseconds: milliseconds) } else { usleep(milliseconds * 1000) }
    }
    guest.invalidate()
    print(
      "\(ticks > 0 ? "the timer fired" : "no timer"), work was left in \(framesWithRest > 1 ? "some" : "no") frames")
  }
}

try Game().play(frames: CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 60)
