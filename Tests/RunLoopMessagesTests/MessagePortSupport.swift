// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

/// A directory for one test, removed on deinitialization.
final class PortDirectory: Sendable {
  let path: String
  var place: MessagePort.Directory { MessagePort.Directory(path: path + "/ports") }

  init() throws {
    var template = Array("/tmp/message-ports-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    for name in ["a", "b", "left"] {
      unlink("\(path)/ports/\(name)")
      unlink("\(path)/ports/\(name).lock")
    }
    rmdir(path + "/ports")
    unlink(path + "/ports")
    rmdir(path)
  }

  var entries: [String] {
    guard let directory = opendir(path + "/ports") else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}

/// A local port, served by a loop on its own thread during the lifetime of this object.
final class PortServer: Sendable {
  let port: MessagePort.Local
  let loop: RunLoop
  private let thread: StartedThread<Bool>
  private let isOver = Box(false)

  init(
    _ directory: PortDirectory, name: String = "a", limits: MessagePort.Limits = .init(),
    handler: @escaping @Sendable (MessagePort.Request) -> MessagePort.Reply? = { MessagePort.Reply($0.bytes) },
    accepts: @escaping @Sendable (MessagePort.Credentials) -> Bool = { $0.isSameUser }
  ) throws {
    let port = try MessagePort.Local(
      name: name, directory: directory.place, limits: limits, accepts: accepts, handler: handler)
    self.port = port
    let made = Box<RunLoop?>(nil)
    let isOver = isOver
    thread = startThread {
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      try? loop.add(port, forMode: .default)
      made.value = loop
      while !isOver.value { loop.run(mode: .default, for: .unlimited) }
      return true
    }
    waitUntil { made.value != nil }
    loop = try #require(made.value)
  }

  deinit { stop() }

  /// Invalidates the port and ends the thread; later calls have no effect.
  func stop() {
    guard !isOver.value else { return }
    isOver.value = true
    port.invalidate()
    loop.perform { RunLoop.current.stop() }
    _ = thread.result()
  }
}

/// Returns the error that a port's method throws, or nil.
func portError<Result>(_ body: () throws(MessagePortError) -> Result) -> MessagePortError? {
  do throws(MessagePortError) {
    _ = try body()
    return nil
  } catch {
    return error
  }
}

/// A connection to a port that may violate the protocol.
final class RawClient {
  let socket: MessagePort.Descriptor

  init(_ directory: PortDirectory, name: String = "a") throws {
    socket = MessagePort.Descriptor(owning: crl_message_socket())
    try #require(crl_message_connect(socket.number, "\(directory.path)/ports/\(name)") == 0)
  }

  @discardableResult
  func send(_ bytes: [UInt8], descriptors: [Int32] = []) -> Int32 {
    crl_message_send(socket.number, bytes, bytes.count, nil, 0, descriptors, Int32(descriptors.count))
  }

  /// Reads one packet without a reply's time stamp; returns no bytes at the end of the connection.
  func receive() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 40_000)
    var descriptors = [Int32](repeating: -1, count: 253)
    var count: Int32 = 0
    var truncation: Int32 = 0
    let size = crl_message_receive(socket.number, 1, &bytes, bytes.count, &descriptors, &count, &truncation)
    for number in descriptors.prefix(Int(count)) { close(number) }
    if MessageFrame.Kind(rawValue: bytes[5])?.isAnswer == true { bytes.replaceSubrange(8..<12, with: [0, 0, 0, 0]) }
    return Array(bytes.prefix(max(0, Int(size))))
  }

  /// Waits until the other end has closed.
  func awaitEnd() -> Bool {
    while true {
      let packet = receive()
      if packet.isEmpty { return true }
    }
  }
}

/// Returns the bytes of a packet.
func packet(_ frame: MessageFrame, _ payload: [UInt8] = []) -> [UInt8] {
  var header = [UInt8](repeating: 0, count: MessageFrame.size)
  header.withUnsafeMutableBytes { frame.encode(into: $0) }
  return header + payload
}
