// Echo servers, ours beside plain epoll in C, in turn in one run:
//
//     socket-race [REQUESTS] [ROUNDS]
//
// 1, 50 and 1000 connections by TCP on the loopback interface, 64 bytes, request and answer; the client is another process.
// It prints the median of the rounds: requests in a second, and the processor time of the server's thread for each.

import CSocketRace
import Glibc
import RunLoopCore
import RunLoopPorts
import RunLoopThreads

struct Round {
  let perSecond: Double
  let processorTime: Double
}

/// Serves one client's connections; gives when that began and ended in processor time.
typealias Server = @Sendable (_ connections: Int, _ start: (Int32) -> Void) -> Void

@Sendable func serveWithEpoll(_ connections: Int, start: (Int32) -> Void) {
  var port: Int32 = 0
  let listener = socket_race_listen(&port)
  start(port)
  socket_race_serve(listener, Int32(connections))
}

@Sendable func serveWithSockets(_ connections: Int, start: (Int32) -> Void) {
  let loop = RunLoop.current
  let closed = Counter()
  do {
    var options = ListeningSocket.Options()
    options.backlog = 4096
    let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { listener, event in
      guard case .accepted(let connection) = event else { return }
      connection.handler = { connection, event in
        switch event {
        case .received(let bytes): _ = try? connection.write(bytes)
        case .ended: connection.shutDown(.write)
        case .closed:
          closed.value += 1
          if closed.value == connections { loop.stop() }
        default: break
        }
      }
      do { try loop.add(connection, forMode: .default) } catch { fatalError("\(error)") }
    }
    try loop.add(listener, forMode: .default)
    start(Int32(listener.address.port ?? 0))
    loop.runUntilStopped()
    listener.invalidate()
  } catch {
    fatalError("\(error)")
  }
}

/// A number of the server's thread.
final class Counter: @unchecked Sendable {
  // Sendable: used by the server's thread until it is joined.
  var value = 0
}

/// One client, served by a thread of its own: the main thread's loop has a dispatch queue to look after.
func race(_ connections: Int, _ requests: Int, _ serve: @escaping Server) -> Round {
  let used = Counter()
  let thread = Thread {
    let before = socket_race_thread_time()
    serve(connections) { port in _ = socket_race_start(port, Int32(connections), Int32(requests)) }
    used.value = Int(socket_race_thread_time() - before)
  }
  thread.start()
  do { try thread.join() } catch { fatalError("\(error)") }
  let taken = socket_race_answer()
  return Round(
    perSecond: Double(requests) * 1e9 / Double(taken), processorTime: Double(used.value) / Double(requests))
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

let arguments = CommandLine.arguments
if arguments.count == 5, arguments[1] == "client", let port = Int32(arguments[2]),
  let connections = Int32(arguments[3]), let requests = Int32(arguments[4])
{
  socket_race_raise_limit()
  print(socket_race_client(port, connections, requests))
  exit(0)
}

let requests = arguments.count > 1 ? Int(arguments[1]) ?? 60_000 : 60_000
let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 5 : 5
socket_race_raise_limit()
for connections in [1, 50, 1000] {
  var (plain, ours): ([Round], [Round]) = ([], [])
  for _ in 0..<rounds {
    plain.append(race(connections, requests, serveWithEpoll))
    ours.append(race(connections, requests, serveWithSockets))
  }
  let rates = (median(plain.map(\.perSecond)), median(ours.map(\.perSecond)))
  let times = (median(plain.map(\.processorTime)), median(ours.map(\.processorTime)))
  func ratio(_ value: Double) -> Double { (value * 100).rounded() / 100 }
  print("\(connections) connections")
  print("  plain epoll  \(Int(rates.0)) requests/s  \(Int(times.0)) ns of the server for each")
  print("  our sockets  \(Int(rates.1)) requests/s  \(Int(times.1)) ns of the server for each")
  print("  ratio        \(ratio(rates.0 / rates.1))  \(ratio(times.1 / times.0))")
}
