import Glibc
import RunLoopCore
import Testing

@testable import RunLoopPorts

/// Runs something in a forked child, and gives the code with which it exits, or minus the signal that has killed it.
///
/// A child that hangs is killed, and its parent can tell.
func exitCodeOfForkedChild(_ body: () throws -> Int32) -> Int32 {
  let child = forkForPorts()
  guard child == 0 else {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    return status & 0x7f == 0 ? status >> 8 & 0xff : -(status & 0x7f)
  }
  var none = sigset_t()
  sigemptyset(&none)
  sigprocmask(SIG_SETMASK, &none, nil)
  alarm(20)
  do { _exit(try body()) } catch { _exit(99) }
}

/// Glibc's module does not let Swift see it.
@_silgen_name("fork")
private func forkForPorts() -> pid_t

/// Each test forks in a process of its own, which has few threads.
@Suite("Sockets in forked children", .timeLimit(.minutes(5)), .disabled(if: isSanitizedForThreads))
struct ForkedSocketTests {
  // M17
  @Test("a child looks hosts up though all threads that do so are busy in its parent")
  func hosts() async {
    await #expect(processExitsWith: .success) {
      let (arrived, isOver) = (Notes<Int>(), Notes<Int>())
      for index in 0..<HostResolver.threadLimit {
        // A numeric host, so that the thread comes to the block at once and stays there.
        let query = HostResolver.Query(host: "127.0.0.1", port: 1, family: nil)
        HostWorkers.shared.add(
          HostLookup(query) { _, _ in
            arrived.add(index)
            while isOver.count == 0 { sched_yield() }
          })
      }
      while arrived.count < HostResolver.threadLimit { sched_yield() }
      let code = onNewThread {
        exitCodeOfForkedChild {
          guard HostWorkers.shared.threadCount == 0 else { return 1 }
          let loop = RunLoop.current
          // The answer alone does not keep the loop running.
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
      #expect(code == 0, "\(code)")
      isOver.add(0)
    }
  }

  // M17
  @Test("the sockets of the parent are invalid in a child, which lets go of them and disturbs nothing")
  func parents() async {
    await #expect(processExitsWith: .success) {
      let path = socketPath()
      let codes = onNewThread { () -> [Int32] in
        var codes: [Int32] = []
        do {
          let loop = RunLoop.current
          let (one, other) = try socketPair()
          let (third, fourth) = try socketPair()
          let log = Notes<String>()
          let socket = try Socket(takingOver: one) { _, event in
            log.add(event.word)
            loop.stop()
          }
          try loop.add(socket, forMode: .default)
          let listener = try ListeningSocket(at: SocketAddress(path: path))
          try loop.add(listener, forMode: .default)
          var streams: (input: InputByteStream, output: OutputByteStream)? = try ByteStream.pair(takingOver: third)
          var unused: ListeningSocket? = try ListeningSocket(at: SocketAddress(path: path + "-unused"))
          streams?.output.open()
          codes.append(
            exitCodeOfForkedChild {
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
            })
          // The peers of all of them are as before.
          codes.append(write(other, "y", 1) == 1 ? 0 : 10)
          loop.runUntilStopped()
          codes.append(log.all == ["received(y)"] ? 0 : 11)
          codes.append(isPeerClosed(fourth) ? 12 : 0)
          codes.append(listener.isValid && unused?.isValid == true && socket.isValid ? 0 : 13)
          _ = streams?.output.status
          listener.invalidate()
          socket.invalidate()
        } catch { codes.append(98) }
        return codes
      }
      #expect(codes == [0, 0, 0, 0, 0])
      #expect(access(path, F_OK) != 0 && access(path + "-unused", F_OK) != 0)
    }
  }

  // M17
  @Test("a child has sockets of its own, though its parent was receiving when it was made")
  func own() async {
    await #expect(processExitsWith: .success) {
      let code = onNewThread { () -> Int32 in
        // What a thread that is not in the child has taken is not given back there.
        let buffers = (0..<4).map { _ in ReceiveBuffers.shared.take() }
        defer { for buffer in buffers { ReceiveBuffers.shared.giveBack(buffer) } }
        let parents = ReceiveBuffers.shared
        return exitCodeOfForkedChild {
          guard ReceiveBuffers.shared !== parents else { return 1 }
          let (one, other) = try socketPair()
          let loop = RunLoop.current
          let log = Notes<String>()
          let socket = try Socket(takingOver: one) { _, event in
            log.add(event.word)
            loop.stop()
          }
          try loop.add(socket, forMode: .default)
          guard write(other, "x", 1) == 1 else { return 2 }
          loop.runUntilStopped()
          return log.all == ["received(x)"] ? 0 : 3
        }
      }
      #expect(code == 0)
    }
  }
}
