// SPDX-License-Identifier: Apache-2.0

// Foundation's own types by their full names, which keep their meaning when RunLoopKit is imported too. The sections
// are compiled with Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Explicit: Foundation's loop, timer, thread and queue
func foundation() -> Bool {
  let loop: Foundation.RunLoop = Foundation.RunLoop.current
  let timer = Foundation.Timer(timeInterval: 1, repeats: false) { $0.invalidate() }
  loop.add(timer, forMode: .default)
  loop.perform { print(Foundation.Thread.current) }
  Foundation.NotificationQueue.default.enqueue(
    Notification(name: .NSThreadWillExit), postingStyle: .asap, coalesceMask: .none,
    forModes: [Foundation.RunLoop.Mode.default])
  return loop.run(mode: Foundation.RunLoop.Mode.default, before: .distantPast)
}

// MARK: Explicit: streams in Foundation's loop
func scheduleInFoundation(_ stream: Stream, _ input: InputStream, _ output: OutputStream) {
  let loop = Foundation.RunLoop.current
  stream.schedule(in: loop, forMode: .default)
  stream.remove(from: loop, forMode: Foundation.RunLoop.Mode.default)
  input.schedule(in: loop, forMode: .common)
  input.remove(from: loop, forMode: .common)
  output.schedule(in: Foundation.RunLoop.main, forMode: .default)
  output.remove(from: Foundation.RunLoop.main, forMode: .default)
}

// MARK: Explicit: a loop that is not named is Foundation's
func scheduleInUnnamed(_ stream: Stream, _ input: InputStream, _ output: OutputStream) {
  stream.schedule(in: .current, forMode: .default)
  stream.remove(from: .current, forMode: .default)
  input.schedule(in: .current, forMode: .common)
  input.remove(from: .current, forMode: .common)
  output.schedule(in: .main, forMode: .default)
  output.remove(from: .main, forMode: .default)
}

// MARK: Explicit: file handles in Foundation's modes
func listenInFoundation(to handle: FileHandle) {
  let modes: [Foundation.RunLoop.Mode] = [.default]
  handle.readInBackgroundAndNotify(forModes: modes)
  handle.readToEndOfFileInBackgroundAndNotify(forModes: modes)
  handle.acceptConnectionInBackgroundAndNotify(forModes: modes)
  handle.waitForDataInBackgroundAndNotify(forModes: modes)
}

// MARK: Explicit: Foundation's ports in Foundation's loop
func listenInFoundation(on port: SocketPort) -> Bool {
  let loop = Foundation.RunLoop.current
  loop.add(port, forMode: .default)
  loop.remove(port, forMode: .default)
  port.schedule(in: loop, forMode: .default)
  port.remove(from: loop, forMode: .default)
  let port: Foundation.Port = port
  port.schedule(in: loop, forMode: .default)
  port.remove(from: loop, forMode: .default)
  return port.isValid
}

// MARK: Explicit: a delegate of Foundation's port
final class FoundationReceiver: Foundation.PortDelegate {
  func handle(_ message: Foundation.PortMessage) { print(message.msgid) }
}

func attach(_ receiver: FoundationReceiver, to port: SocketPort) -> Bool {
  port.setDelegate(receiver)
  return port.delegate() === receiver && (port as Foundation.Port).delegate() != nil
}

// MARK: Explicit: what Foundation's port sends
func sendInFoundation(_ port: SocketPort) -> Bool {
  let reply: Foundation.Port? = nil
  return port.send(before: Date(), components: nil, from: reply, reserved: 0)
    && port.send(before: Date(), msgid: 7, components: nil, from: reply, reserved: port.reservedSpaceLength)
}

// MARK: Explicit: Foundation's timer in a loop
func addFoundation(_ timer: Foundation.Timer, to loop: RunLoop) {
  loop.add(timer, forMode: .default)
  loop.add(timer, forMode: RunLoop.Mode.common)
}

// MARK: Explicit: Foundation's port in a loop
func addFoundation(_ port: Foundation.Port, to loop: RunLoop) {
  loop.add(port, forMode: .default)
  loop.remove(port, forMode: RunLoop.Mode.default)
  port.schedule(in: loop, forMode: .default)
  port.remove(from: loop, forMode: RunLoop.Mode.default)
}

// MARK: Explicit: a stream's subclass, as it compiles with both
final class PlainStream: OutputStream {
  override var hasSpaceAvailable: Bool { false }
  override func schedule(in aRunLoop: Foundation.RunLoop, forMode mode: Foundation.RunLoop.Mode) {}
  override func remove(from aRunLoop: Foundation.RunLoop, forMode mode: Foundation.RunLoop.Mode) {}
}

// MARK: Explicit: a timer's double for tests, as it compiles with both
class CountingFoundationTimer: Foundation.Timer {
  var count = 0
  override func fire() { count += 1 }
  override func invalidate() { count = 0 }
}

// MARK: Explicit: full names beside short ones
// Porting: `Foundation.RunLoop` beside `RunLoop`
func later(on loop: Foundation.RunLoop = .main, _ body: @escaping @Sendable () -> Void) { loop.perform(body) }
func laterOnMain() { later(on: RunLoop.main) {} }
func mixedTimer() -> Foundation.Timer { Timer(timeInterval: 1, repeats: false) { _ in } }

// MARK: Explicit: full names throughout
func soon(on loop: Foundation.RunLoop = .main, _ body: @escaping @Sendable () -> Void) {
  loop.perform(body)
  loop.add(Foundation.Timer(timeInterval: 1, repeats: false) { _ in }, forMode: .default)
}
func soonOnMain() { soon(on: Foundation.RunLoop.main) {} }
func soonOnDefault() { soon {} }

// MARK: Explicit: streams in a loop that is not named
final class Listener: NSObject, StreamDelegate {
  func stream(_ stream: Stream, handle event: Stream.Event) { print(event) }
}

func listen(_ input: InputStream, _ output: OutputStream, _ listener: Listener) {
  input.delegate = listener
  input.schedule(in: .current, forMode: .default)
  output.schedule(in: .main, forMode: .common)
  input.remove(from: .current, forMode: .default)
}
