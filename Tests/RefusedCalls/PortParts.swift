// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Glibc
import RunLoopCore
import RunLoopHTTP
import RunLoopMessages
import RunLoopSockets
import RunLoopThreads
import TestSupport

// Message ports, sockets and streams.
extension Parts {
  private static func exchange(_ bytes: [UInt8]) throws {
    let scratch = try ScratchDirectory()
    let directory = MessagePort.Directory(path: scratch.path + "/ports")
    do {
      _ = try MessagePort.Remote(name: "nobody", directory: directory)
      throw Missing(what: "an error for a port that is not there")
    } catch MessagePortError.noSuchPort {}
    let server = try ResidentThread(name: "server")
    defer { server.stop() }
    let port = try MessagePort.Local(name: "echo", directory: directory) { request in
      MessagePort.Reply(Array(request.bytes.reversed()))
    }
    try server.runLoop.add(port, forMode: .default)
    do {
      _ = try MessagePort.Remote(name: "nobody", directory: directory)
      throw Missing(what: "an error for a port that is not there")
    } catch MessagePortError.noSuchPort {}
    let remote = try MessagePort.Remote(name: "echo", directory: directory)
    let reply = try remote.send(id: 1, bytes: bytes, receiveTimeout: .seconds(300))
    try check(reply?.bytes == Array(bytes.reversed()), "the reply")
    // The loop runs meanwhile, and waits for the reply by its own means.
    let second = try remote.send(id: 1, bytes: bytes, receiveTimeout: .seconds(300), replyMode: .default)
    try check(second?.bytes == Array(bytes.reversed()), "the second reply")
    remote.invalidate()
    port.invalidate()
  }

  @Sendable static func messages() throws { try exchange([1, 2, 3]) }

  @Sendable static func longMessages() throws { try exchange((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) }) }

  private static func echo(_ address: SocketAddress, _ options: ListeningSocket.Options = .init()) throws {
    let listener = try ListeningSocket(at: address, options: options) { [loop] listener, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = { socket, event in
        if case .received(let bytes) = event { _ = try? socket.write(bytes) }
      }
      try? loop.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
    let said = Box("")
    let client = try Socket(connectingTo: listener.address) { socket, event in
      if case .connected = event { _ = try? socket.write("hello") }
      if case .received(let bytes) = event {
        said.value += bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
      }
    }
    try loop.add(client, forMode: .default)
    try run { said.value == "hello" }
    client.invalidate()
    listener.invalidate()
  }

  @Sendable static func sockets() throws { try echo(SocketAddress("127.0.0.1:0")) }

  @Sendable static func unixSockets() throws {
    let scratch = try ScratchDirectory()
    var options = ListeningSocket.Options()
    options.fileMode = 0o640
    let path = scratch.path + "/socket"
    let before = umask(0o077)
    defer { umask(before) }
    let listener = try ListeningSocket(at: SocketAddress(path: path), options: options)
    var status = stat()
    try check(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o640, "the mode of the socket's file")
    listener.invalidate()
    try echo(SocketAddress(path: path), options)
  }

  @Sendable static func datagrams() throws {
    let count = Box(0)
    let receiver = try DatagramSocket(boundTo: SocketAddress("127.0.0.1:0")) { _, event in
      if case .received = event { count.value += 1 }
    }
    try loop.add(receiver, forMode: .default)
    let sender = try DatagramSocket(boundTo: SocketAddress("127.0.0.1:0"))
    for number in 0..<20 { _ = try sender.send([UInt8(number)], to: receiver.localAddress()) }
    try run { count.value == 20 }
    sender.invalidate()
    receiver.invalidate()
  }

  /// A pipe that other processes hold too, and that is opened once more.
  @Sendable static func streams() throws {
    let pipe = try RawPipe()
    let said = Box("")
    let stream = try InputByteStream(takingOver: dup(pipe.reading))
    stream.handler = { stream, event in
      guard case .hasBytesAvailable = event, let stream = stream as? InputByteStream else { return }
      withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
        if let count = try? stream.read(into: buffer) {
          said.value += String(decoding: buffer[..<count], as: UTF8.self)
        }
      }
    }
    try stream.schedule(in: loop, forMode: .default)
    stream.open()
    pipe.write(Array("hello".utf8))
    try run { said.value == "hello" }
    stream.close()
  }

  @Sendable static func http() throws {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    let listener = try ListeningSocket(at: SocketAddress("127.0.0.1:0")) { [loop] _, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = { socket, event in
        guard case .received = event else { return }
        _ = try? socket.write(answer)
        socket.shutDown(.write)
      }
      try? loop.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
    let client = HTTP.Client(HTTP.Configuration())
    let result = Box("")
    let operation = client.operation(HTTP.Request("http://\(listener.address)/"), on: loop)
    operation.onCompletion { outcome in
      switch outcome {
      case .success((_, let response)): result.value = "\(response.status.code)"
      case .failure(let error): result.value = "\(error)"
      }
    }
    operation.start()
    try run { !result.value.isEmpty }
    try check(result.value == "200", "the response, but \(result.value)")
    listener.invalidate()
  }
}
