// SPDX-License-Identifier: Apache-2.0

// Foundation's other API on Linux that takes a run loop, a mode, a timer or a port. The sections are compiled with
// Foundation alone and together with RunLoopKit.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Others: streams
func schedule(_ stream: Stream, _ input: InputStream, _ output: OutputStream) {
  stream.schedule(in: RunLoop.current, forMode: .default)
  stream.remove(from: RunLoop.current, forMode: RunLoop.Mode.default)
  let (loop, mode) = (RunLoop.main, RunLoop.Mode("mine"))
  input.schedule(in: loop, forMode: .common)
  input.remove(from: loop, forMode: .common)
  output.schedule(in: loop, forMode: mode)
  output.remove(from: loop, forMode: mode)
}

// MARK: Others: file handles
func listen(to handle: FileHandle) {
  handle.readInBackgroundAndNotify(forModes: [.default, .common])
  handle.readToEndOfFileInBackgroundAndNotify(forModes: [RunLoop.Mode.default])
  handle.acceptConnectionInBackgroundAndNotify(forModes: [RunLoop.Mode("mine")])
  let modes: [RunLoop.Mode] = [.common]
  handle.waitForDataInBackgroundAndNotify(forModes: modes)
}

// MARK: Others: file handles without modes
func listenInNoModes(to handle: FileHandle) {
  handle.readInBackgroundAndNotify(forModes: nil)
  handle.readInBackgroundAndNotify()
  handle.readToEndOfFileInBackgroundAndNotify(forModes: nil)
  handle.acceptConnectionInBackgroundAndNotify(forModes: nil)
  handle.waitForDataInBackgroundAndNotify(forModes: nil)
}

// MARK: Others: socket ports
func listen(on port: SocketPort) -> Bool {
  RunLoop.current.add(port, forMode: .default)
  RunLoop.current.remove(port, forMode: .default)
  port.schedule(in: RunLoop.current, forMode: .default)
  port.remove(from: RunLoop.current, forMode: RunLoop.Mode.default)
  let parts: NSMutableArray = [NSData(data: Data([1, 2, 3]))]
  return port.send(before: Date(), components: parts, from: nil, reserved: 0)
    && port.send(before: Date(), msgid: 7, components: nil, from: nil, reserved: 0)
}

// MARK: Others: delegates of socket ports
final class SocketReceiver: PortDelegate {
  func handle(_ message: PortMessage) { print(message.msgid, message.components ?? []) }
}

func attach(_ receiver: SocketReceiver, to port: SocketPort) -> Bool {
  port.setDelegate(receiver)
  defer { port.setDelegate(nil) }
  let delegate: (any PortDelegate)? = port.delegate()
  return delegate === receiver
}

// MARK: Others: a message between socket ports
func post(_ parts: [AnyObject], to port: SocketPort, from reply: SocketPort?) -> Bool {
  let message = PortMessage(sendPort: port, receivePort: reply, components: parts)
  message.msgid = 7
  return message.send(before: .distantFuture)
}
