// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets
@testable import RunLoopSystemEvents

/// Each storm has its own process, in which nothing else opens a descriptor or creates a thread.
@Suite("Storms that must not leak", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct StormTests {
  @Test("no leak: datagrams that are sent, awaited, rejected and dropped, between peers of every kind")
  func datagrams() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      @Sendable func turn(_ kind: String) -> String {
        onSocketLoop { loop, log in
          let count = Box(0)
          for index in 0..<50 {
            let receiver = try DatagramSocket(boundTo: socketAddress(kind)) { socket, event in
              guard case .received = event else { return }
              count.value += 1
              // Half of them end in their handler, the others with their loop.
              if index % 2 == 0 { socket.invalidate() }
            }
            let address = try receiver.localAddress()
            let sender = try DatagramSocket(boundTo: nil, connectedTo: address)
            for socket in [receiver, sender] { try loop.add(socket, forMode: .default) }
            try sender.send([UInt8](repeating: 1, count: index * 40))
            // It retries sending after a delay, and is dropped while it waits.
            let full = try DatagramSocket(boundTo: socketAddress("unix:@"))
            let other = try DatagramSocket(boundTo: socketAddress("unix:@"))
            try loop.add(other, forMode: .default)
            while try other.send([1], to: full.localAddress()) {}
            if index % 3 == 0 { other.invalidate() }
          }
          while count.value < 50 { loop.run(mode: .default, for: .seconds(60), returnAfterSourceHandled: true) }
        }
      }
      await expectNothingLeft { for kind in socketKinds { #expect(turn(kind) == "") } }
    }
  }

  @Test("no leak: tasks that wait for datagrams and are cancelled, get one, or lose their loop")
  func awaitedDatagrams() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      @Sendable func turn() async throws {
        let (thread, loop) = SourceRig.startLoop()
        for index in 0..<30 {
          let receiver = try DatagramSocket(boundTo: .loopback(port: 0))
          try loop.add(receiver, forMode: .default)
          let waiting = Task { try await receiver.receive() }
          if index % 3 == 0 { waiting.cancel() }
          if index % 3 == 1 { try DatagramSocket(boundTo: .any(port: 0)).send([1], to: receiver.localAddress()) }
          if index % 3 == 2 {
            await yieldUntil { receiver.lock.withLock { receiver.reader.isTaken } }
            receiver.invalidate()
          }
          #expect(try await waiting.value?.bytes == (index % 3 == 1 ? [1] : nil))
        }
        let lost = try DatagramSocket(boundTo: .loopback(port: 0))
        try loop.add(lost, forMode: .default)
        let waiting = Task { try await lost.receive() }
        await yieldUntil { lost.lock.withLock { lost.reader.isTaken } }
        loop.perform { loop.stop() }
        thread.join()
        await #expect(throws: DatagramError.loop(.loopHasEnded)) { _ = try await waiting.value }
      }
      @Sendable func five() async throws { for _ in 0..<5 { try await turn() } }
      try await expectNothingLeft { try await five() }
    }
  }

  @Test("no leak: programs with pipes that end, are asked to end, are killed, or cannot be started")
  func programs() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      @Sendable func turn() -> String {
        onSocketLoop { loop, log in
          let left = Box(24)
          for index in 0..<24 {
            var options = SpawnedProcess.Options()
            options.standardInput = .pipe
            options.standardOutput = .pipe
            options.standardError = index % 2 == 0 ? .pipe : .null
            let script =
              switch index % 4 {
              case 0: "exec cat"
              case 1: "exit 3"
              case 2: "exec sleep 1000"
              default: "trap '' TERM; echo; exec sleep 1000"
              }
            let spawned = try SpawnedProcess("/bin/sh", ["-c", script], options: options)
            #expect(throws: SpawnError.self) { _ = try SpawnedProcess("/no/such/program", options: options) }
            let source = ChildProcessSource(spawned, leavesStatus: index % 3 == 0) { source, end in
              if source.leavesStatus { _ = reap(source.process) }
              left.value -= 1
              if left.value == 0 { loop.stop() }
            }
            try loop.add(source, forMode: .default)
            spawned.standardInput?.open()
            spawned.standardInput?.close()
            if index % 4 == 2 { try spawned.terminate(within: .seconds(3600), on: loop) }
            if index % 4 == 3 {
              try spawned.standardOutput?.log(Log(), on: loop)
              try spawned.terminate(within: .milliseconds(1), on: loop)
            }
          }
          loop.runUntilStopped()
        }
      }
      await expectNothingLeft { #expect(turn() == "") }
    }
  }

  @Test("no leak: connections by name that are made, rejected, cancelled or too late")
  func names() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      @Sendable func turn() -> String {
        onSocketLoop { loop, log in
          let listener = try loop.listen { _, _ in }
          let port = try #require(listener.address.port)
          let (refusing, holder) = try refusingAddress("127.0.0.1:0")
          defer { close(holder) }
          let left = Box(60)
          for index in 0..<60 {
            let body: @Sendable (Result<Socket, HostConnectionError>) -> Void = { _ in
              left.value -= 1
              if left.value == 0 { loop.stop() }
            }
            let name = index % 2 == 0 ? "127.0.0.1" : "localhost"
            switch index % 4 {
            case 0, 1: Socket.connect(toHost: name, port: port, on: loop, body)
            case 2: Socket.connect(toHost: name, port: refusing.port ?? 0, timeout: .seconds(3600), on: loop, body)
            default:
              Socket.connect(toHost: name, port: port, on: loop) { _ in log.write("called") }.cancel()
              left.value -= 1
            }
          }
          if left.value > 0 { loop.runUntilStopped() }
        }
      }
      await expectNothingLeft { #expect(turn() == "") }
    }
  }

  @Test("no leak: listening sockets that are handed over, taken over and limited")
  func listening() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      @Sendable func turn() -> String {
        onSocketLoop { loop, log in
          for _ in 0..<20 {
            let path = socketPath()
            let left = Box(3)
            var options = ListeningSocket.Options()
            options.maximumConnectionCount = 2
            options.requestDeadline = .seconds(3600)
            options.fileMode = 0o600
            options.socketOptions = [.receiveBuffer(bytes: 10_000)]
            var listener = try ListeningSocket(at: SocketAddress(path: path), options: options)
            for _ in 0..<3 {
              listener = try ListeningSocket(takingOver: listener.handOver(), options: options) { listener, event in
                guard case .accepted(let socket) = event else { return }
                if (try? socket.peerCredentials().process) != getpid() { log.write("stranger") }
                socket.invalidate()
                left.value -= 1
                if left.value == 0 { loop.stop() }
              }
            }
            try loop.add(listener, forMode: .default)
            let sockets = try (0..<3).map { _ in try Socket(connectingTo: listener.address) }
            loop.runUntilStopped()
            for socket in sockets { socket.invalidate() }
            listener.invalidate()
            #expect(access(path, F_OK) == -1)
          }
        }
      }
      await expectNothingLeft { #expect(turn() == "") }
    }
  }

  @Test("no leak: streams over pipes, files, terminals and TLS connections, used or only opened")
  func streams() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      let contexts = TLSFiles.isAvailable ? try (TLSContext.client(), TLSContext.server()) : nil
      @Sendable func turn() -> String {
        onSocketLoop { loop, log in
          for index in 0..<30 {
            var ends: [Int32] = [0, 0]
            try #require(crl_pipe(&ends) == 0)
            let (input, output) = try (InputByteStream(takingOver: ends[0]), OutputByteStream(takingOver: ends[1]))
            let file = try InputByteStream(takingOver: open("/proc/self/stat", O_RDONLY | O_CLOEXEC))
            let terminal = try OutputByteStream(takingOver: open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY))
            for stream in [input, output, file, terminal] as [ByteStream] {
              try stream.schedule(in: loop, forMode: .default)
              if index % 3 != 0 { stream.open() }
              if index % 3 == 2 { stream.close() }
            }
            guard let (client, server) = contexts else { continue }
            let (near, far) = try socketPair()
            let pair = try ByteStream.pair(takingOver: near, tls: client, serverName: "localhost")
            var options = Socket.Options()
            options.tls = server
            let peer = try Socket(takingOver: far, options: options) { socket, event in
              if case .ended = event { socket.shutDown(.write) }
              if case .closed = event { loop.stop() }
            }
            try loop.add(peer, forMode: .default)
            pair.output.handler = { stream, event in
              guard case .canAcceptBytes = event else { return }
              _ = try? (stream as? OutputByteStream)?.write([1])
              // Written bytes remain to be sent.
              pair.output.close()
              pair.input.close()
            }
            for stream in [pair.input, pair.output] as [ByteStream] {
              try stream.schedule(in: loop, forMode: .default)
              stream.open()
            }
            loop.runUntilStopped()
          }
        }
      }
      await expectNothingLeft { #expect(turn() == "") }
    }
  }
}
