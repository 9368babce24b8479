// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Synchronization
import TestRules
import TestSupport
import Testing

@testable import RunLoopSockets

/// Each test forks in its own process, which has few threads.
@Suite("Sockets in forked children", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct ForkedSocketTests {
  @Test("a child can look hosts up although all look-up threads of its parent are busy", .rule(.m17))
  func hosts() async {
    await #expect(processExitsWith: .success) {
      let (arrived, isOver) = (Notes<Int>(), Notes<Int>())
      for index in 0..<HostResolver.maximumLookupCount {
        // A numeric host, so that the thread calls the block immediately and stays in it.
        let query = HostResolver.Query(host: "127.0.0.1", port: 1, family: nil)
        HostWorkers.shared.add(
          HostLookup(query) { _, _ in
            arrived.add(index)
            while isOver.count == 0 { sched_yield() }
          })
      }
      while arrived.count < HostResolver.maximumLookupCount { sched_yield() }
      let code = onNewThread {
        inForkedChild {
          guard HostWorkers.shared.threadCount == 0 else { return 1 }
          let loop = RunLoop.current
          // A pending look-up alone does not keep the loop running.
          loop.add(RunLoop.Source {}, forMode: .default)
          let answers = Notes<Bool>()
          HostResolver.resolve("localhost", port: 80, on: loop) { answer in
            answers.add((try? answer.get().isEmpty) == false)
            loop.stop()
          }
          loop.runUntilStopped()
          return answers.all == [true] ? 0 : 2
        }
      }
      #expect(code == .exited(0), "\(code)")
      isOver.add(0)
    }
  }

  @Test("a parent's sockets are invalid in a child, which releases them without disturbing the parent", .rule(.m17))
  func parents() async {
    await #expect(processExitsWith: .success) {
      let path = socketPath()
      let log = onNewThread {
        let log = Log()
        do {
          let loop = RunLoop.current
          let (one, other) = try socketPair()
          let (third, fourth) = try socketPair()
          let socket = try Socket(takingOver: one) { _, event in
            log.write(event.word)
            loop.stop()
          }
          try loop.add(socket, forMode: .default)
          // As if a task had waited for the socket.
          socket.hasBeenAwaited.store(true, ordering: .sequentiallyConsistent)
          let listener = try ListeningSocket(at: SocketAddress(path: path))
          try loop.add(listener, forMode: .default)
          var streams: (input: InputByteStream, output: OutputByteStream)? = try ByteStream.pair(takingOver: third)
          var unused: ListeningSocket? = try ListeningSocket(at: SocketAddress(path: path + "-unused"))
          streams?.output.open()
          let child =
            inForkedChild {
              guard !socket.isValid, !listener.isValid, streams?.output.status == .closed else { return 1 }
              guard socketFailure({ _ = try socket.write("x") }) == "\(SocketError.invalid)" else { return 2 }
              guard socketFailure({ try RunLoop.current.add(socket, forMode: .default) }) != "nothing" else { return 3 }
              guard socketFailure({ try RunLoop.current.add(listener, forMode: .default) }) != "nothing" else {
                return 4
              }
              RunLoop.current.remove(socket, forMode: .default)
              guard !RunLoop.current.contains(socket, forMode: .default) else { return 5 }
              guard !socket.debugDescription.isEmpty, !listener.debugDescription.isEmpty else { return 6 }
              socket.invalidate()
              socket.shutDown(.both)
              listener.invalidate()
              streams?.output.close()
              streams = nil
              unused = nil
              return access(path, F_OK) == 0 && access(path + "-unused", F_OK) == 0 ? 0 : 7
            }
          log.write("\(child)")
          // The peers of all sockets are unaffected.
          log.write("\(write(other, "y", 1))")
          loop.runUntilStopped()
          log.write("\(isPeerClosed(fourth)) \(listener.isValid) \(unused?.isValid ?? false) \(socket.isValid)")
          _ = streams?.output.status
          listener.invalidate()
          socket.invalidate()
        } catch { log.write("\(error)") }
        return log.text
      }
      #expect(log == "exited(0) 1 received(y) false true true true")
      #expect(access(path, F_OK) != 0 && access(path + "-unused", F_OK) != 0)
    }
  }

  @Test(
    "a parent's datagram sockets are invalid in a child, which may create its own", .rule(.m17))
  func datagrams() async {
    await #expect(processExitsWith: .success) {
      let path = socketPath()
      let log = onNewThread {
        let log = Log()
        do {
          let loop = RunLoop.current
          let receiver = try DatagramSocket(boundTo: SocketAddress(path: path)) { _, event in
            if case .received(let bytes, _) = event { log.write(text(bytes)) }
            loop.stop()
          }
          try loop.add(receiver, forMode: .default)
          var unused: DatagramSocket? = try DatagramSocket(boundTo: SocketAddress(path: path + "-unused"))
          let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
          // Received bytes belong to the parent.
          try sender.send(Array("first".utf8))
          let child = inForkedChild {
            guard !receiver.isValid, !sender.isValid, receiver.handler == nil else { return 1 }
            do {
              _ = try sender.send([1])
              return 2
            } catch DatagramError.invalid {}
            guard socketFailure({ try RunLoop.current.add(receiver, forMode: .default) }) != "nothing" else { return 3 }
            RunLoop.current.remove(receiver, forMode: .default)
            guard !RunLoop.current.contains(receiver, forMode: .default) else { return 4 }
            receiver.pauseReading()
            receiver.invalidate()
            unused = nil
            guard receiver.withDescriptor({ $0 }) == nil, !receiver.debugDescription.isEmpty else { return 5 }
            guard access(path, F_OK) == 0, access(path + "-unused", F_OK) == 0 else { return 6 }
            // A socket of the child sends to the parent, and receives its own reply.
            let loop = RunLoop.current
            let count = Box(0)
            let own = try DatagramSocket(boundTo: .loopback(port: 0)) { _, event in
              if case .received = event { count.value += 1 }
              loop.stop()
            }
            try loop.add(own, forMode: .default)
            try DatagramSocket(boundTo: .any(port: 0)).send([1], to: own.localAddress())
            loop.runUntilStopped()
            try DatagramSocket(boundTo: nil, connectedTo: SocketAddress(path: path)).send(Array("child".utf8))
            return count.value == 1 ? 0 : 7
          }
          log.write("\(child)")
          while !log.text.contains("child") { loop.runUntilStopped() }
          log.write("\(try sender.send(Array("last".utf8))) \(unused?.isValid ?? false)")
          loop.runUntilStopped()
          receiver.invalidate()
        } catch { log.write("\(error)") }
        return log.text
      }
      #expect(log == "exited(0) first child true true last")
      #expect(access(path, F_OK) != 0 && access(path + "-unused", F_OK) != 0)
    }
  }

  @Test("a child has sockets of its own, although its parent was receiving at the fork", .rule(.m17))
  func own() async {
    await #expect(processExitsWith: .success) {
      let code = onNewThread { () -> ForkedEnd in
        // Buffers taken by threads that do not exist in the child are never returned there.
        let buffers = (0..<4).map { _ in ReceiveBuffers.single.take() }
        defer { for buffer in buffers { ReceiveBuffers.single.giveBack(buffer) } }
        let taken = buffers.map(\.baseAddress)
        return inForkedChild {
          let own = (0..<16).map { _ in ReceiveBuffers.single.take() }
          guard !own.contains(where: { taken.contains($0.baseAddress) }) else { return 1 }
          for buffer in own { ReceiveBuffers.single.giveBack(buffer) }
          let (one, other) = try socketPair()
          let loop = RunLoop.current
          let log = Log()
          let socket = try Socket(takingOver: one) { _, event in
            log.write(event.word)
            loop.stop()
          }
          try loop.add(socket, forMode: .default)
          guard write(other, "x", 1) == 1 else { return 2 }
          loop.runUntilStopped()
          return log.text == "received(x)" ? 0 : 3
        }
      }
      #expect(code == .exited(0))
    }
  }
}
