// SPDX-License-Identifier: Apache-2.0

// Features of Foundation's types on Linux that RunLoopKit's types lack. The sections are compiled with Foundation
// alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Lost: loops, timers, threads and ports are objects of Foundation
// Porting: `T: NSObject` for loops, timers, threads and ports
func objects(_ timer: Timer, _ thread: Thread, _ port: Port) -> [NSObject] { [RunLoop.main, timer, thread, port] }

// MARK: Lost: a copy of what cannot be copied
// Porting: `T: NSObject` for loops, timers, threads and ports
func copies(_ loop: RunLoop, _ timer: Timer, _ thread: Thread) -> [Any] {
  [loop.copy(), timer.copy(), thread.mutableCopy()]
}

// MARK: Lost: a subclass of timers
// Porting: `class Alarm: Timer`
class Alarm: Timer {
  override func fire() { print("fires") }
}

// MARK: Lost: a port that sends and is told by its subclass
// Porting: `class Signal: Port`
final class Loopback: Port {
  override func setDelegate(_ anObject: (any PortDelegate)?) {}
  override func delegate() -> (any PortDelegate)? { nil }
  override func send(
    before limitDate: Date, components: NSMutableArray?, from receivePort: Port?, reserved headerSpaceReserved: Int
  ) -> Bool { true }
  override func send(
    before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
    reserved headerSpaceReserved: Int
  ) -> Bool { false }
}
