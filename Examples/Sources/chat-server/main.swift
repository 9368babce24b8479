// SPDX-License-Identifier: Apache-2.0

// A chat server that sends each line to all other members. A member that sends nothing for half a minute, or does not
// read for five seconds, is disconnected.
//
//     swift run --package-path Examples chat-server [PORT]
//     swift run --package-path Examples chat-server --demo
//
// It prints its address, and exits on SIGINT or SIGTERM. The demo is a short scenario that checks itself and exits
// with 0 or 1.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads

actor Room {
  private var members: [Socket] = []

  func serve(_ member: Socket, on loop: RunLoop) async {
    members.append(member)
    defer {
      members.removeAll { $0 === member }
      member.invalidate()
    }
    do {
      try loop.add(member, forMode: .default)
      member.setDeadline(after: .seconds(30))
      for try await line in member.lines(upTo: 4096) {
        member.setDeadline(after: .seconds(30))
        for other in members where other !== member { await say(line, to: other, on: loop) }
      }
    } catch {
      print("let go: \(error)")
    }
  }

  private func say(_ line: String, to member: Socket, on loop: RunLoop) async {
    do {
      try await loop.withTimeout(.seconds(5)) { try await member.send(line: line) }
    } catch {
      member.invalidate()
    }
  }
}

let thread = try ResidentThread(name: "chat")
let loop = thread.runLoop
let listener = try ListeningSocket(at: .loopback(port: UInt16(CommandLine.arguments.last ?? "") ?? 0))
try loop.add(listener, forMode: .default)
let server = Task {
  let room = Room()
  for try await connection in listener.connections { Task { await room.serve(connection, on: loop) } }
}

/// Sends a number repeatedly, and reports once it has received the numbers of `count` other members.
func member(_ number: Int, hears count: Int, _ report: AsyncStream<Int>.Continuation) async throws {
  let socket = try Socket(connectingTo: listener.address)
  try loop.add(socket, forMode: .default)
  Task {
    while true {
      try await socket.send(line: "\(number)")
      try await loop.sleep(for: .milliseconds(200))
    }
  }
  var heard: Set<String> = []
  for try await line in socket.lines() where heard.insert(line).inserted && heard.count == count {
    report.yield(heard.contains("\(number)") ? 0 : count)
  }
}

if CommandLine.arguments.last == "--demo" {
  let (reports, report) = AsyncStream<Int>.makeStream()
  for number in 0..<20 { Task { try await member(number, hears: 19, report) } }
  var heard: [Int] = []
  for await count in reports {
    heard.append(count)
    if heard.count == 20 { break }
  }
  print("heard by each: \(Set(heard).sorted())")
  exit(Set(heard) == [19] ? 0 : 1)
}

print(listener.address)
fflush(nil)
for signal in [SIGINT, SIGTERM] {
  let events = try SignalSource.events(of: signal, on: loop)
  Task { for await _ in events { listener.invalidate() } }
}
try await server.value
thread.stop()
