// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

#if DEBUG
  @Suite("Failing system calls of TLS connections", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
  struct TLSFaultTests {
    /// Returns the outcome of both ends of a connection within this thread, which each send five bytes and then end.
    ///
    /// - Parameter plan: The faults that apply after the sockets were created.
    private func outcome(
      _ contexts: (client: TLSContext, server: TLSContext), _ plan: @escaping @Sendable () -> FaultPlan
    ) throws -> (client: [String], server: [String], isUsedUp: Bool) {
      let (near, far) = try socketPair()
      let logs = (Notes<String>(), Notes<String>())
      let isUsedUp = Box(false)
      let failure = onVirtualSocketLoop { loop, log in
        let plan = plan()
        try plan.rule {
          var sockets: [Socket] = []
          for (descriptor, context, notes) in [(near, contexts.client, logs.0), (far, contexts.server, logs.1)] {
            var options = Socket.Options()
            options.tls = context
            options.serverName = context.isServer ? nil : "localhost"
            let socket = try Socket(takingOver: descriptor, options: options) { socket, event in
              notes.add(event.cause)
              if case .connected = event {
                _ = try? socket.write("hello")
                socket.shutDown(.write)
              }
            }
            try loop.add(socket, forMode: .default)
            sockets.append(socket)
          }
          // A process that another test is just starting may hold an end that was closed here. Virtual time does not
          // wait for it.
          func isOver() -> Bool { sockets.allSatisfy { !$0.isValid && !loop.contains($0, forMode: .default) } }
          for _ in 0..<10_000 {
            loop.run(mode: .default, for: .seconds(100))
            if isOver() { break }
            usleep(1000)
          }
          // There is nothing left to wait for.
          #expect(isOver())
        }
        isUsedUp.value = plan.isUsedUp
      }
      #expect(failure == "")
      return (logs.0.all, logs.1.all, isUsedUp.value)
    }

    @Test(
      "whichever call fails, each end is reported once, and nothing is reported after that",
      arguments: [(SystemCall.streamRead, ECONNRESET), (.streamWrite, EPIPE), (.shutDown, ENOTCONN)])
    func ending(call: SystemCall, number: Int32) throws {
      let contexts = try (TLSContext.client(), TLSContext.server())
      let whole = ["connected", "received(hello)", "ended", "closed"]
      var count = 0
      while true {
        let turn = count
        let (client, server, isUsedUp) = try outcome(contexts) {
          let plan = FaultPlan()
          for _ in 0..<turn { plan.plan(call, nil) }
          plan.plan(call, .fails(number))
          return plan
        }
        // The sequence has fewer calls than that: nothing has failed.
        guard isUsedUp else {
          #expect(client == whole && server == whole)
          break
        }
        for log in [client, server] {
          // A process that another test is just starting may briefly hold the other end, so that its close is not
          // seen before the virtual handshake timeout.
          let ends = log.filter {
            $0.hasPrefix("closed") || $0 == "truncated" || $0.hasPrefix("handshakeTimedOut")
          }
          #expect(ends.count == 1 && ends.first == log.last, "call \(turn): \(log)")
          // A call whose result is no longer needed may fail unnoticed.
          if ends == ["closed"] { #expect(log == whole, "call \(turn): \(log)") }
        }
        count += 1
      }
      #expect(count > 1)
    }

    @Test(
      "whichever call is interrupted or would block, everything arrives",
      arguments: [SystemCall.streamRead, .streamWrite])
    func again(call: SystemCall) throws {
      let contexts = try (TLSContext.client(), TLSContext.server())
      let whole = ["connected", "received(hello)", "ended", "closed"]
      for turn in 0..<12 {
        let (client, server, _) = try outcome(contexts) {
          let plan = FaultPlan()
          for _ in 0..<turn { plan.plan(call, nil) }
          plan.plan(call, .fails(EINTR), .fails(EAGAIN), .fails(EINTR), .fails(EAGAIN))
          return plan
        }
        #expect(client == whole && server == whole, "call \(turn): \(client) \(server)")
      }
    }

    /// Returns the outcome of both streams of a client whose server sends back five bytes.
    private func streamOutcome(
      _ contexts: (client: TLSContext, server: TLSContext), _ plan: @escaping @Sendable () -> FaultPlan
    ) throws -> (log: String, isUsedUp: Bool) {
      let (near, far) = try socketPair()
      let isUsedUp = Box(false)
      let log = onVirtualSocketLoop { loop, log in
        var options = Socket.Options()
        options.tls = contexts.server
        let server = try Socket(takingOver: far, options: options) { socket, event in
          if case .received(let bytes) = event { _ = try? socket.write(bytes) }
          if case .ended = event { socket.shutDown(.write) }
        }
        try loop.add(server, forMode: .default)
        let plan = plan()
        try plan.rule {
          let pair = try ByteStream.pair(takingOver: near, tls: contexts.client, serverName: "localhost")
          let ends = (Notes<String>(), Notes<String>())
          for (stream, notes) in [(pair.input, ends.0), (pair.output, ends.1)] as [(ByteStream, Notes<String>)] {
            stream.handler = { stream, event in
              switch event {
              case .openCompleted: notes.add("open")
              case .hasBytesAvailable:
                var bytes = [UInt8](repeating: 0, count: 100)
                let count = bytes.withUnsafeMutableBytes { try? (stream as? InputByteStream)?.read(into: $0) }
                // The end and a failure are separate events.
                if let count, count > 0 { notes.add(String(decoding: bytes[..<count], as: UTF8.self)) }
              case .canAcceptBytes:
                guard let stream = stream as? OutputByteStream else { return }
                if (try? stream.write(Array("hello".utf8))) == 5 { stream.close() }
              case .endEncountered: notes.add("end")
              case .errorOccurred: notes.add("failed")
              }
            }
            try stream.schedule(in: loop, forMode: .default)
            stream.open()
          }
          loop.run(mode: .default, for: .seconds(100))
          log.write("\(ends.0.all) \(ends.1.all)")
          pair.input.close()
          pair.output.close()
          loop.run(mode: .default, for: .seconds(100))
        }
        server.invalidate()
        isUsedUp.value = plan.isUsedUp
      }
      return (log, isUsedUp.value)
    }

    private static let wholeStreams = "[\"open\", \"hello\", \"end\"] [\"open\"]"

    @Test(
      "whichever call of two streams fails, each stream reports it at most once",
      arguments: [(SystemCall.streamRead, ECONNRESET), (.streamWrite, EPIPE), (.shutDown, ENOTCONN)])
    func streams(call: SystemCall, number: Int32) throws {
      let contexts = try (TLSContext.client(), TLSContext.server())
      var count = 0
      while true {
        let turn = count
        let (log, isUsedUp) = try streamOutcome(contexts) {
          let plan = FaultPlan()
          for _ in 0..<turn { plan.plan(call, nil) }
          plan.plan(call, .fails(number))
          return plan
        }
        guard isUsedUp else {
          #expect(log == Self.wholeStreams)
          break
        }
        #expect(
          log.split(separator: "]").allSatisfy { $0.matches(of: /failed|end/).count <= 1 }, "call \(turn): \(log)")
        count += 1
      }
      #expect(count > 0)
    }

    @Test("whichever call of two streams is interrupted or would block, everything arrives")
    func streamsAgain() throws {
      let contexts = try (TLSContext.client(), TLSContext.server())
      for turn in 0..<10 {
        for call in [SystemCall.streamRead, .streamWrite] {
          let (log, _) = try streamOutcome(contexts) {
            let plan = FaultPlan()
            for _ in 0..<turn { plan.plan(call, nil) }
            plan.plan(call, .fails(EINTR), .fails(EAGAIN))
            return plan
          }
          #expect(log == Self.wholeStreams, "\(call) \(turn): \(log)")
        }
      }
    }

    @Test("a certificate file that cannot be read is named in the error, and nothing stays open")
    func files() throws {
      for (call, number) in [(SystemCall.openFile, EMFILE), (.eventRead, EIO)] {
        for path in [TLSFiles.path("ca.pem"), TLSFiles.path("server.pem"), TLSFiles.path("server.key")] {
          let plan = FaultPlan()
          if path.hasSuffix(".key") { plan.plan(call, nil) }
          // The certificate needs two reads: its text, and the end.
          if path.hasSuffix(".key"), call == .eventRead { plan.plan(call, nil) }
          plan.plan(call, .fails(number))
          let error = SystemError(call: call.rawValue, number: number)
          _ = plan.rule {
            #expect(throws: TLSError(.file(path: path, error))) {
              _ = path.hasSuffix("ca.pem") ? try TLSContext.client() : try TLSContext.server()
            }
          }
          #expect(plan.isUsedUp)
        }
      }
    }

    @Test("a peer whose address is unknown is left out of the error")
    func peer() throws {
      let context = try TLSContext.client()
      let (near, far) = try socketPair()
      let log = onVirtualSocketLoop { loop, log in
        var options = Socket.Options()
        options.tls = context
        options.serverName = "localhost"
        let socket = try Socket(takingOver: near, options: options) { _, event in
          if case .closed(let error?) = event { log.write("\(error)") }
        }
        try loop.add(socket, forMode: .default)
        shutdown(far, Int32(SHUT_WR))
        let plan = FaultPlan()
        plan.plan(.peerName, .fails(ENOTCONN))
        _ = plan.rule { loop.run(mode: .default, for: .seconds(100)) }
      }
      close(far)
      #expect(log == "TLS with localhost: the peer has closed the connection during the handshake")
    }
  }
#endif
