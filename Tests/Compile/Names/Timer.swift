// SPDX-License-Identifier: Apache-2.0

// Foundation's timer API on Linux. The sections are compiled with Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Timer: making one
func makeTimers() -> [Timer] {
  let first = Timer(timeInterval: 0.5, repeats: true) { timer in timer.invalidate() }
  let second = Timer(fire: Date(timeIntervalSinceNow: 1), interval: 0, repeats: false) { _ in }
  let third = Timer(fire: .distantFuture, interval: 60 as TimeInterval, repeats: true, block: { $0.invalidate() })
  let fourth = Timer.scheduledTimer(withTimeInterval: 2.5, repeats: false) { (timer: Timer) in timer.fire() }
  let block: @Sendable (Timer) -> Void = { $0.fire() }
  return [first, second, third, fourth, Timer(timeInterval: 1, repeats: false, block: block)]
}

// MARK: Timer: a scheduled timer whose result nobody wants
func scheduleAndForget() {
  Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in }
}

// MARK: Timer: its members
func members(of timer: Timer) -> String {
  timer.fire()
  timer.fireDate = Date(timeIntervalSinceNow: 3)
  timer.fireDate += 1
  timer.tolerance = 0.1
  timer.tolerance *= 2
  let date: Date = timer.fireDate
  let interval: TimeInterval = timer.timeInterval + timer.tolerance
  let info: Any? = timer.userInfo
  guard timer.isValid else { return "" }
  timer.invalidate()
  return "\(date) \(interval) \(info ?? "nothing")"
}

// MARK: Timer: identity
func compare(_ timer: Timer, _ other: Timer) -> Bool {
  var owners: [Timer: String] = [timer: "timer"]
  owners[other] = "other"
  return timer == other || timer === other || Set([timer, other]).count == owners.count || timer.hashValue == 0
}

// MARK: Timer: in a class
final class Clock {
  private var timer: Timer?
  private weak var last: Timer?

  @MainActor func start() {
    timer?.invalidate()
    let timer = Timer(timeInterval: 1, repeats: true) { timer in
      guard timer.isValid else { return }
      timer.fireDate = Date()
    }
    RunLoop.main.add(timer, forMode: .common)
    last = timer
    self.timer = timer
  }

  func stop() {
    timer?.invalidate()
    timer = nil
  }
}

// MARK: Timer: what is printed of it
func timerText(_ timer: Timer) -> String { "\(timer) \(timer.description) \(timer.debugDescription)" }

// MARK: Timer: as an object
func timerObject(_ timer: Timer) -> Bool { timer.isEqual(timer) && timer.hash == timer.hashValue }

// MARK: Timer: stopped by another thread
func stop(_ timer: Timer, on queue: DispatchQueue) {
  queue.async { timer.invalidate() }
}

// MARK: Timer: in a Sendable type
final class Ticker: Sendable {
  let timer = Timer(timeInterval: 1, repeats: true) { _ in }
}
