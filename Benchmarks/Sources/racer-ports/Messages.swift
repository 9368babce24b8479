// SPDX-License-Identifier: Apache-2.0

import CRace
import Glibc
import Race
import RunLoopCore
import RunLoopMessages

private let payload = [UInt8](repeating: 7, count: Int(RACE_MESSAGE))
private let rounds = 20

/// Runs two bodies alternately, each for a part of `count` operations, and reports both median times.
private func compare(_ metric: String, _ count: Int64, ours: (Int) -> Void, floor: (Int) -> Void) {
  let part = Int(race_scaled(count, Int64(rounds) * 50)) / rounds
  var times: [[Double]] = [[], []]
  for round in 0...rounds {
    for index in 0..<2 {
      let begin = race_now()
      if index == 0 { ours(part) } else { floor(part) }
      // The first round is a warm-up.
      if round > 0 { times[index].append(Double(race_now() - begin) / Double(part)) }
    }
  }
  for (peer, times) in zip(["RunLoopKit", "floor"], times) {
    race_set_peer(peer)
    race_report(metric, times.sorted()[rounds / 2], "ns")
  }
}

private func socketPair() -> (Int32, Int32) {
  var ends: [Int32] = [0, 0]
  race_check(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0, "no socket pair")
  return (ends[0], ends[1])
}

// -- M1: two processes

/// Runs as the other process, of a kind and with the place of the first one.
func serve(_ kind: String, _ place: String) -> Never {
  race_end_with_parent()
  if kind == "--serve-bare" { BareEnd(Int32(place) ?? -1).serve() }
  // Not on the main thread, whose loop serves the main dispatch queue too.
  onThread {
    do {
      let port = try MessagePort.Local(name: "race", directory: .init(path: place)) { request in
        request.expectsReply ? MessagePort.Reply(request.bytes) : nil
      }
      try RunLoop.current.add(port, forMode: .default)
      RunLoop.current.runUntilStopped()
    } catch { fatalError("\(error)") }
    exit(1)
  }
  while true { pause() }
}

private func start(_ kind: String, _ place: String) -> pid_t {
  var process = pid_t()
  let words = ["racer-ports", kind, place].map { (word: String) in strdup(word) }
  defer { for word in words { free(word) } }
  race_check(posix_spawn(&process, "/proc/self/exe", nil, nil, words + [nil], environ) == 0, "no process")
  return process
}

func m1() {
  var template = Array("/tmp/message-race-XXXXXX".utf8CString)
  race_check(mkdtemp(&template) != nil, "no directory")
  let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  let (one, other) = socketPair()
  _ = fcntl(one, F_SETFD, FD_CLOEXEC)
  let processes = [start("--serve-port", directory), start("--serve-bare", "\(other)")]
  close(other)
  let bare = BareEnd(one)
  guard let remote = connect(directory) else { return race_check(false, "the port has not come") }
  compare("request and reply of 64 bytes", 40_000) { count in
    for _ in 0..<count {
      let reply = try? remote.send(id: 1, bytes: payload, receiveTimeout: nil)
      race_check(reply?.bytes.count == payload.count, "no reply")
    }
  } floor: { count in
    for token in 0..<count { bare.request(token, payload) }
  }
  compare("message of 64 bytes", 200_000) { count in
    do {
      for _ in 0..<count { try remote.send(id: 1, bytes: payload) }
      try remote.awaitConfirmations()
    } catch { race_check(false, "\(error)") }
  } floor: { count in
    for token in 0..<count { bare.send(.message, token, payload) }
    bare.send(.confirmation, count, [])
    race_check(bare.receive()?.kind == .confirmation, "no confirmation")
  }
  for process in processes {
    kill(process, SIGKILL)
    waitpid(process, nil, 0)
  }
  for name in ["/race", "/race.lock"] { unlink(directory + name) }
  rmdir(directory)
}

/// Waits up to ten seconds for the other process.
private func connect(_ directory: String) -> MessagePort.Remote? {
  for _ in 0..<10_000 {
    if let remote = try? MessagePort.Remote(name: "race", directory: .init(path: directory)) { return remote }
    usleep(1000)
  }
  return nil
}

// -- M2: two threads

func m2() {
  let loop = RunLoop.current
  let count = Counter()
  let answers = Port { port, message in
    guard message.components.first?.bytes?.count == payload.count else { return race_check(false, "no reply") }
    count.left -= 1
    guard count.left > 0, let service = count.service else { return loop.stop() }
    ask(service, port)
  }
  loop.add(answers, forMode: .default)
  let service = Port { _, message in
    do {
      try message.replyPort?.send(.init(id: message.id, components: message.components))
    } catch { race_check(false, "\(error)") }
  }
  count.service = service
  onThread {
    RunLoop.current.add(service, forMode: .default)
    RunLoop.current.runUntilStopped()
  }
  let (one, other) = socketPair()
  onThread { BareEnd(other).serve() }
  let bare = BareEnd(one)
  compare("request and reply of 64 bytes", 40_000) { part in
    count.left = part
    ask(service, answers)
    loop.runUntilStopped()
  } floor: { part in
    for token in 0..<part { bare.request(token, payload) }
  }
}

private func ask(_ service: Port, _ answers: Port) {
  do {
    try service.send(.init(id: 1, components: [.bytes(payload)], replyPort: answers))
  } catch { race_check(false, "\(error)") }
}

/// The count of the requesting thread.
private final class Counter: @unchecked Sendable {
  // Sendable: used by one thread.
  var left = 0
  var service: Port?
}
