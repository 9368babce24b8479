import Glibc
import RunLoopPorts

private func nanoseconds() -> Int {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return now.tv_sec * 1_000_000_000 + now.tv_nsec
}

private func start(_ arguments: [String]) -> pid_t {
  var process = pid_t()
  let words = (["message-race"] + arguments).map { (word: String) in strdup(word) }
  defer { for word in words { free(word) } }
  var environment: [UnsafeMutablePointer<CChar>?] = [nil]
  guard posix_spawn(&process, "/proc/self/exe", nil, nil, words + [nil], &environment) == 0 else {
    fatalError("no process")
  }
  return process
}

/// A server in a process of its own, and the two things that are asked of it.
private protocol Runner {
  func requests(_ count: Int, _ payload: [UInt8])
  func messages(_ count: Int, _ payload: [UInt8])
}

private struct PortRunner: Runner {
  let remote: MessagePort.Remote

  init(_ directory: String) {
    while true {
      if let remote = try? MessagePort.Remote(name: "race", directory: .init(path: directory)) {
        self.remote = remote
        return
      }
      usleep(1000)
    }
  }

  func requests(_ count: Int, _ payload: [UInt8]) {
    for _ in 0..<count {
      guard let reply = try? remote.send(id: 1, bytes: payload, receiveTimeout: nil), reply.bytes.count == payload.count
      else { fatalError("no reply") }
    }
  }

  func messages(_ count: Int, _ payload: [UInt8]) {
    do {
      for _ in 0..<count { try remote.send(id: 1, bytes: payload) }
      try remote.awaitConfirmations()
    } catch { fatalError("\(error)") }
  }
}

private struct BareRunner: Runner {
  let end: BareEnd

  func requests(_ count: Int, _ payload: [UInt8]) {
    for token in 0..<count {
      _ = end.send(.init(kind: 1, token: UInt64(token), length: payload.count), payload)
      guard let (frame, bytes) = end.receive(), frame.token == token, bytes.count == payload.count else {
        fatalError("no reply")
      }
    }
  }

  func messages(_ count: Int, _ payload: [UInt8]) {
    for token in 0..<count { _ = end.send(.init(kind: 2, token: UInt64(token), length: payload.count), payload) }
    _ = end.send(.init(kind: 3, token: 0, length: 0), [])
    guard end.receive() != nil else { fatalError("no confirmation") }
  }
}

func race(count: Int, rounds: Int) {
  var template = Array("/tmp/message-race-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { fatalError("no directory") }
  let directory = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
  var processes = [start(["port", directory])]
  var runners: [(String, any Runner)] = [("port", PortRunner(directory))]
  for kind in ["bare", "blocking"] {
    var ends: [Int32] = [0, 0]
    guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0 else { fatalError("no socket pair") }
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    processes.append(start([kind, "\(ends[1])"]))
    close(ends[1])
    runners.append((kind, BareRunner(end: BareEnd(ends[0]))))
  }
  for size in [64, 4096] {
    let payload = [UInt8](repeating: 7, count: size)
    for isRequest in [true, false] {
      var times: [[Int]] = Array(repeating: [], count: runners.count)
      for _ in 0...rounds {
        for (index, runner) in runners.enumerated() {
          let begin = nanoseconds()
          if isRequest { runner.1.requests(count, payload) } else { runner.1.messages(count, payload) }
          times[index].append((nanoseconds() - begin) / count)
        }
      }
      // The best round of each: what else the machine does only adds. The first one warms up.
      let best = times.map { $0.dropFirst().min() ?? 0 }
      let ratio = (Double(best[0]) / Double(best[1]) * 100).rounded() / 100
      let what = isRequest ? "request and reply" : "one-way message"
      print("\(what), \(size) bytes: ", terminator: "")
      for (index, runner) in runners.enumerated() { print("\(runner.0) \(best[index]) ns", terminator: ", ") }
      print("port / bare \(ratio)")
    }
  }
  for process in processes {
    kill(process, SIGKILL)
    waitpid(process, nil, 0)
  }
  for name in ["/race", "/race.lock"] { unlink(directory + name) }
  rmdir(directory)
}
