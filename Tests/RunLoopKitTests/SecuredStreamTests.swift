// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSockets
import RunLoopThreads
import TestSupport
import Testing

// The streams of these tests are nonisolated(unsafe) because they are used only on the thread of their loop.

/// A self-signed certificate for localhost with its key, created on first use.
private enum OwnCertificate {
  static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

  static let path: String = {
    let path = "/tmp/run-loop-streams-\(getpid()).pem"
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    let script = """
      umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout \(path) -out \(path).c \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 30 2>/dev/null && cat \(path).c >>\(path) && rm \(path).c
      """
    process.arguments = ["-c", script]
    do { try process.start() } catch { fatalError("\(error)") }
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { fatalError("no certificate was made") }
    atexit { unlink(OwnCertificate.path) }
    return path
  }()

  /// Creates a context for clients that trust it.
  static func client() throws -> TLSContext {
    var configuration = TLSConfiguration()
    configuration.roots = [.file(path)]
    return try TLSContext(configuration)
  }

  static func server() throws -> TLSContext {
    try TLSContext(TLSServerConfiguration(identity: TLSIdentity(certificateFile: path, keyFile: path)))
  }
}

/// A server on its own thread, with a log of what it received.
private struct Server {
  let thread: ResidentThread
  let port: Int
  let received = Log()
  let connections = Box(0)

  /// - Parameters:
  ///   - tls: Secures connections from the start, or after a command.
  ///   - handler: Called with each event.
  init(tls: TLSContext?, _ handler: @escaping @Sendable (Server, Socket, borrowing Socket.Event) -> Void) throws {
    thread = try ResidentThread(name: "server of a test")
    let loop = thread.runLoop
    let held = Box<Server?>(nil)
    var options = ListeningSocket.Options()
    options.accepted.tls = tls
    let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { _, event in
      guard case .accepted(let socket) = event, let server = held.value else { return }
      server.connections.update { $0 += 1 }
      socket.handler = { socket, event in handler(server, socket, event) }
      try? loop.add(socket, forMode: .default)
    }
    port = Int(listener.address.port ?? 0)
    held.value = self
    try loop.add(listener, forMode: .default)
  }

  /// Echoes what it receives, and ends with its client.
  static func echo(_ server: Server, _ socket: Socket, _ event: borrowing Socket.Event) {
    switch event {
    case .received(let bytes):
      // Large data is not logged, because most of it is not text.
      if bytes.byteCount < 100 { server.received.write(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }) }
      if (try? socket.write(bytes)) != true { socket.pauseReading() }
    case .writable: socket.resumeReading()
    case .ended: socket.shutDown(.write)
    default: break
    }
  }

  func stop() throws {
    thread.stop(.immediately)
    try thread.join()
  }
}

private func pair(_ port: Int, host: String = "localhost") throws -> (input: InputStream, output: OutputStream) {
  var (input, output): (InputStream?, OutputStream?)
  Stream.getStreamsToHost(withName: host, port: port, inputStream: &input, outputStream: &output)
  return (try #require(input), try #require(output))
}

private func word(_ error: (any Error)?) -> String {
  switch error {
  case SocketError.tls(let error)?: "\(error.cause)"
  case let error as TLSError: "\(error.cause)"
  case let error?: "\(error)"
  case nil: "nothing"
  }
}

@Suite(
  "Secured pairs of streams in Foundation's spelling",
  .enabled(if: OwnCertificate.isAvailable), .timeLimit(.minutes(20))
)
struct SecuredStreamTests {
  /// Runs a body on its own thread, on the system's clock, and returns the log.
  private func log(_ body: @escaping @Sendable (Log, RunLoopKit.RunLoop) throws -> Void) throws -> String {
    let log = Log()
    let thread = try ResidentThread(name: "streams of a test")
    defer { thread.stop(.immediately) }
    try thread.performAndWait { try body(log, RunLoop.current) }
    return log.text
  }

  @Test(
    "a client's streams are secured, whether requested before or after they are opened",
    arguments: [true, false])
  func delegates(isBefore: Bool) throws {
    let server = try Server(tls: OwnCertificate.server(), Server.echo)
    let context = try OwnCertificate.client()
    let log = try log { log, loop in
      let (made, other) = try pair(server.port)
      nonisolated(unsafe) let (reader, writer) = (made, other)
      let (mine, its) = (Log(), Log())
      let reading = StreamListener(mine) { stream, event in
        if event == .hasBytesAvailable { stream.read(100, mine) }
        if event == .endEncountered || event == .errorOccurred { loop.stop() }
      }
      let writing = StreamListener(its) { stream, event in
        guard event == .hasSpaceAvailable else { return }
        stream.write("hello", its)
        stream.close()
      }
      (reader.delegate, writer.delegate) = (reading, writing)
      let secure = {
        for stream in [reader, writer] as [Stream] {
          log.write("\(stream.setProperty(context, forKey: .tlsContextKey))")
          let level = StreamSocketSecurityLevel.negotiatedSSL.rawValue as AnyObject
          log.write("\(stream.setProperty(level, forKey: .socketSecurityLevelKey))")
        }
      }
      if isBefore { secure() }
      for stream in [reader, writer] as [Stream] {
        stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      if !isBefore { secure() }
      loop.runUntilStopped()
      log.write("[\(mine.text)] [\(its.text)] \(reader.streamStatus == .atEnd) \(writer.streamStatus == .closed)")
      let level = reader.property(forKey: .socketSecurityLevelKey) as? String
      log.write("\(level == StreamSocketSecurityLevel.negotiatedSSL.rawValue)")
      reader.close()
    }
    try server.stop()
    #expect(
      log == "true true true true [opened bytes hello end] [opened space 5] true true true")
    #expect(server.received.text == "hello")
  }

  @Test("a connection can be secured after a command, and nothing is sent in plain text from then on")
  func startTLS() throws {
    let context = try OwnCertificate.server()
    let server = try Server(tls: nil) { server, socket, event in
      guard case .received(let bytes) = event else { return Server.echo(server, socket, event) }
      let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
      server.received.write("\(text) \(socket.tlsInfo != nil)")
      _ = try? socket.write(text == "STARTTLS" ? "go" : "secret")
      if text == "STARTTLS" { try? socket.startTLS(context) }
    }
    let client = try OwnCertificate.client()
    let log = try log { log, _ in
      let (input, output) = try pair(server.port)
      for stream in [input, output] as [Stream] { stream.open() }
      output.write("STARTTLS", log)
      input.read(100, log)
      for stream in [input, output] as [Stream] {
        log.write("\(stream.setProperty(client, forKey: .tlsContextKey))")
      }
      output.write("password", log)
      input.read(100, log)
      for stream in [input, output] as [Stream] { stream.close() }
    }
    try server.stop()
    #expect(log == "8 go true true 8 secret")
    #expect(server.received.text == "STARTTLS false password true")
  }

  @Test(
    "an untrusted server is an error of both streams, and receives nothing",
    arguments: ["level", "raw", "name"])
  func untrusted(kind: String) throws {
    let server = try Server(tls: OwnCertificate.server(), Server.echo)
    let context = try OwnCertificate.client()
    let log = try log { log, _ in
      let (input, output) = try pair(server.port, host: kind == "name" ? "127.0.0.1" : "localhost")
      for stream in [input, output] as [Stream] {
        let level = StreamSocketSecurityLevel.negotiatedSSL
        switch kind {
        case "level": _ = stream.setProperty(level as AnyObject, forKey: .socketSecurityLevelKey)
        case "raw": _ = stream.setProperty(level.rawValue as AnyObject, forKey: .socketSecurityLevelKey)
        default: _ = stream.setProperty(context, forKey: .tlsContextKey)
        }
        stream.open()
      }
      // Written data may be queued until the handshake.
      _ = output.write([1, 2, 3], maxLength: 3)
      input.read(1, log)
      log.write(word(input.streamError))
      while output.streamStatus != .error { _ = output.write([1], maxLength: 1) }
      log.write(word(output.streamError))
    }
    try server.stop()
    let cause: TLSError.Cause = kind == "name" ? .wrongHost(expected: "127.0.0.1") : .selfSigned
    #expect(log == "failed \(cause) \(cause)")
    #expect(server.received.text == "")
  }

  @Test("an unavailable security setting prevents the connection, whether the program checks or not")
  func rejected() throws {
    let server = try Server(tls: nil, Server.echo)
    let own = try OwnCertificate.server()
    let settings = Stream.PropertyKey(rawValue: "kCFStreamPropertySSLSettings")
    let log = try log { log, _ in
      let rejected: [(Stream.PropertyKey, AnyObject)] = [
        (
          .socketSecurityLevelKey, StreamSocketSecurityLevel(rawValue: "kCFStreamSocketSecurityLevelSSLv3") as AnyObject
        ),
        (.socketSecurityLevelKey, 7 as AnyObject),
        (settings, ["kCFStreamSSLCertificates": [1]] as AnyObject), (settings, "all" as AnyObject),
        (settings, ["kCFStreamSSLIsServer": true] as AnyObject), (.tlsServerNameKey, 1 as AnyObject),
        (.tlsContextKey, own), (.tlsContextKey, "context" as AnyObject),
      ]
      for (key, value) in rejected {
        let (input, output) = try pair(server.port)
        log.write("\(input.setProperty(value, forKey: key))")
        for stream in [input, output] as [Stream] { stream.open() }
        output.write("secret", log)
        switch output.streamError {
        case StreamSecurityError.unsupportedLevel(let text)?: log.write("level(\(text.suffix(5)))")
        case StreamSecurityError.unsupportedSetting(let text)?: log.write("setting(\(text.suffix(6)))")
        case let error: log.write(word(error))
        }
      }
      let (input, _) = try pair(server.port)
      log.write("\(input.setProperty(nil, forKey: .networkServiceType))")
    }
    try server.stop()
    let texts = [
      "level(SSLv3)", "level(7)", "setting(icates)", "setting(ttings)", "setting(Server)", "setting(erName)",
      "wrongSide",
      "setting(ontext)",
    ]
    #expect(log == texts.map { "false failed \($0) " }.joined() + "false")
    #expect(server.connections.value == 0)
  }

  @Test("a security level that is set and unset has no effect, and Apple's settings can skip checks")
  func settings() throws {
    let (plain, secured) = try (Server(tls: nil, Server.echo), Server(tls: OwnCertificate.server(), Server.echo))
    let log = try log { log, _ in
      let (first, second) = try pair(plain.port)
      for level in [StreamSocketSecurityLevel.tlSv1, .none] {
        log.write("\(first.setProperty(level as AnyObject, forKey: .socketSecurityLevelKey))")
      }
      let (third, fourth) = try pair(secured.port, host: "127.0.0.1")
      let settings =
        ["kCFStreamSSLValidatesCertificateChain": false, "kCFStreamSSLPeerName": NSNull()] as [String: Any]
      log.write("\(third.setProperty(settings as AnyObject, forKey: .init(rawValue: "kCFStreamPropertySSLSettings")))")
      for (input, output) in [(first, second), (third, fourth)] {
        for stream in [input, output] as [Stream] { stream.open() }
        output.write("hello", log)
        input.read(100, log)
        output.close()
        input.read(100, log)
        input.close()
      }
      // A secured connection stays secure.
      log.write("\(third.setProperty(StreamSocketSecurityLevel.none as AnyObject, forKey: .socketSecurityLevelKey))")
    }
    for server in [plain, secured] { try server.stop() }
    #expect(log == "true true true 5 hello nothing 5 hello nothing false")
  }

  @Test("with only a security level, the system's trust applies")
  func system() async {
    await #expect(processExitsWith: .success) {
      // OpenSSL reads this variable when it is loaded.
      setenv("SSL_CERT_FILE", OwnCertificate.path, 1)
      let server = try Server(tls: OwnCertificate.server(), Server.echo)
      let log = Log()
      let (input, output) = try pair(server.port)
      for stream in [input, output] as [Stream] {
        let isSet = stream.setProperty(
          StreamSocketSecurityLevel.negotiatedSSL as AnyObject, forKey: .socketSecurityLevelKey)
        log.write("\(isSet)")
        stream.open()
      }
      output.write("hello", log)
      input.read(100, log)
      #expect(log.text == "true true 5 hello")
      try server.stop()
    }
  }

  @Test("a connection that is cut off is an error after the bytes that arrived before")
  func truncation() throws {
    let server = try Server(tls: OwnCertificate.server()) { _, socket, event in
      guard case .connected = event else { return }
      _ = try? socket.write("last")
      socket.withDescriptor { _ = shutdown($0, Int32(SHUT_RDWR)) }
    }
    let context = try OwnCertificate.client()
    let log = try log { log, _ in
      let (input, output) = try pair(server.port)
      _ = input.setProperty(context, forKey: .tlsContextKey)
      for stream in [input, output] as [Stream] { stream.open() }
      for _ in 0..<2 { input.read(100, log) }
      log.write(word(input.streamError))
    }
    try server.stop()
    #expect(log == "last failed \(TLSError.Cause.truncated)")
  }

  @Test("on a secured connection a writer and a reader wait for each other, and all bytes arrive in order")
  func amounts() throws {
    let server = try Server(tls: OwnCertificate.server(), Server.echo)
    let (input, output) = try pair(server.port)
    _ = output.setProperty(try OwnCertificate.client(), forKey: .tlsContextKey)
    nonisolated(unsafe) let writer = output
    let sent = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 / 5) }
    let thread = try ResidentThread(name: "writer")
    try thread.perform {
      writer.open()
      var place = 0
      while place < sent.count {
        let count = sent[place...].withUnsafeBufferPointer { bytes in
          bytes.baseAddress.map { writer.write($0, maxLength: min(100_000, bytes.count)) } ?? 0
        }
        guard count > 0 else { break }
        place += count
      }
      writer.close()
    }
    input.open()
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 10_000)
    while true {
      let count = input.read(&buffer, maxLength: buffer.count)
      guard count > 0 else { break }
      received += buffer[..<count]
    }
    #expect(received == sent && input.streamStatus == .atEnd)
    thread.stop()
    try thread.join()
    try server.stop()
  }

  @Test("stream pairs used, dropped in any state or never opened leak no descriptor and no thread")
  func storm() async {
    await #expect(processExitsWith: .success) {
      let (plain, secured) = try (Server(tls: nil, Server.echo), Server(tls: OwnCertificate.server(), Server.echo))
      let context = try OwnCertificate.client()
      func turn() throws {
        for index in 0..<60 {
          let (input, output) = try pair(index % 2 == 0 ? plain.port : secured.port)
          if index % 2 == 1 { _ = input.setProperty(context, forKey: .tlsContextKey) }
          guard index % 5 != 0 else { continue }
          for stream in [input, output] as [Stream] { stream.open() }
          guard index % 5 != 1 else { continue }
          let log = Log()
          output.write("x", log)
          guard index % 5 != 2 else { continue }
          input.read(10, log)
          #expect(log.text == "1 x")
          guard index % 5 != 3 else { continue }
          for stream in [input, output] as [Stream] { stream.close() }
        }
        for _ in 0..<20 {
          var (input, output): (InputStream?, OutputStream?)
          Stream.getBoundStreams(withBufferSize: 10, inputStream: &input, outputStream: &output)
          output?.open()
        }
      }
      try turn()
      let before = (DescriptorCensus(), threadCount())
      for _ in 0..<3 { try turn() }
      // The servers observe the ends of all connections, and then the streams' own sockets are closed. Some sockets
      // of the first turn may have been open when they were counted, but leaks of three turns would exceed that.
      waitUntil { DescriptorCensus().isWithin(before.0) && threadCount() <= before.1 }
      for server in [plain, secured] { try server.stop() }
    }
  }
}

private func threadCount() -> Int {
  (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
}
