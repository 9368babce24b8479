// SPDX-License-Identifier: Apache-2.0

import CRunLoopAgent
import CRunLoopSystem
import RunLoopCore
import RunLoopLibC
import RunLoopInstruments

/// A connection to a process's agent, which knows the items of its loops.
final class AgentConnection {
  private let socket: Int32
  private let target: TargetProcess

  /// The time limit of a response in seconds, and its maximum size in bytes.
  static let patience = 30
  static let most = 32 << 20

  /// Connects to the agent; throws if none responds.
  init(_ target: TargetProcess) throws(RecordError) {
    self.target = target
    // Opening the records reports a process without loops or with another layout.
    _ = try target.openRecords()
    var reason: RecordError?
    for directory in target.directories {
      do throws(RecordError) {
        let socket = try target.rights.openingFiles { () throws(RecordError) -> Int32? in
          try AgentConnection.connect(directory, target)
        }
        if let socket {
          self.socket = socket
          return
        }
      } catch {
        // As with the records, the process may use another directory.
        reason = reason ?? error
      }
    }
    throw reason
      ?? RecordError(
        "process \(target.number) has no agent to answer: it is built without RunLoopInstruments and RunLoopKit, or "
          + "RUNLOOP_INSTRUMENTS was off when it was started. No other process can ask for it"
          + (access("/proc/sys/kernel/yama/ptrace_scope", F_OK) == 0
            ? ", whatever /proc/sys/kernel/yama/ptrace_scope allows" : ""))
  }

  /// Uses a connected socket, for the fuzzer.
  init(socket: Int32, to target: TargetProcess) {
    self.socket = socket
    self.target = target
  }

  deinit { close(socket) }

  /// Asks a process to permit reading its memory, where the kernel permits this only to its parent.
  ///
  /// The permission lasts as long as the returned connection. Returns nil if it is not needed or not granted.
  static func permission(of target: TargetProcess) -> AgentConnection? {
    guard geteuid() != 0, readWhole("/proc/sys/kernel/yama/ptrace_scope")?.hasPrefix("1") ?? false,
      let agent = try? AgentConnection(target),
      // The process permits this to a tool that holds a level, for as long as it does.
      (try? agent.ask(["request": .text("hold"), "level": .int(1)])) != nil,
      (try? agent.ask(["request": .text("permit")])) != nil
    else { return nil }
    return agent
  }

  /// Connects to the socket of a process's directory without following symbolic links; returns nil if no process
  /// listens there.
  private static func connect(_ directory: String, _ target: TargetProcess) throws(RecordError) -> Int32? {
    let parent = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard parent >= 0 else { return nil }
    defer { close(parent) }
    let place = openat(parent, target.recordName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard place >= 0 else { return nil }
    defer { close(place) }
    for descriptor in [parent, place] {
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_uid == target.user, status.st_mode & 0o022 == 0 else {
        throw RecordError(
          "\(directory) is not trusted, as it is not the user's own (\(target.user)), or others may write to it")
      }
    }
    let socket = RunLoopLibC.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw failure("socket") }
    var limit = timeval(tv_sec: 1, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array("/proc/self/fd/\(place)/agent".utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let answer = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        RunLoopLibC.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    if answer == 0, isListener(socket, target) { return socket }
    let reason = errno
    close(socket)
    // Left over from another program in the process or from an ended process.
    if answer == 0 || [ENOENT, ECONNREFUSED, ENOTSOCK].contains(reason) { return nil }
    if reason == EAGAIN { throw AgentConnection.silence(target) }
    throw RecordError("process \(target.number) cannot be asked: \(String(cString: strerror(reason)))")
  }

  /// Whether the listener is the process itself, or was passed to it by root.
  private static func isListener(_ socket: Int32, _ target: TargetProcess) -> Bool {
    var (process, user, group): (Int32, UInt32, UInt32) = (0, 0, 0)
    guard crl_socket_peer_credentials(socket, &process, &user, &group) >= 0 else { return false }
    return (user == target.user || user == 0) && (process == target.number || process == 0)
  }

  private static func failure(_ call: String) -> RecordError {
    RecordError("\(call) has failed: \(String(cString: strerror(errno)))")
  }

  /// The error for a missing response.
  private static func silence(_ target: TargetProcess) -> RecordError {
    let reason = target.isStopped ? "it is stopped, by a signal or a debugger" : "it has not within \(patience) s"
    return RecordError("process \(target.number) does not answer: \(reason)")
  }

  /// Sends a request and returns the frames of the response; if the process ends meanwhile, returns the frames so far.
  func ask(_ request: [String: AgentDocument]) throws(RecordError) -> [AgentDocument] {
    // The limit applies to the whole response, however slowly it is sent.
    let deadline = crl_monotonic_nanoseconds() + Int64(AgentConnection.patience) * 1_000_000_000
    guard send(AgentDocument.object(request).bytes, by: deadline) else { throw ended() }
    var frames: [AgentDocument] = []
    var size = 0
    while true {
      guard let bytes = try receiveFrame(by: deadline) else {
        if !target.isAlive { return frames }
        throw ended()
      }
      size += bytes.count
      guard size <= AgentConnection.most else {
        throw RecordError("process \(target.number) answers with more than \(AgentConnection.most >> 20) MiB")
      }
      guard let frame = AgentDocument(bytes: bytes) else {
        throw RecordError("process \(target.number) answers something that this tool does not understand")
      }
      if let reason = frame["error"]?.text { throw RecordError("process \(target.number) says: \(reason)") }
      if frame["end"]?.bool ?? false { return frames }
      frames.append(frame)
    }
  }

  private func ended() -> RecordError { RecordError("process \(target.number) has ended the conversation") }

  private func send(_ bytes: [UInt8], by deadline: Int64) -> Bool {
    let length = UInt32(bytes.count)
    let frame = (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + bytes
    var sent = 0
    while sent < frame.count {
      let count = frame.withUnsafeBytes {
        RunLoopLibC.send(socket, $0.baseAddress.map { $0 + sent }, frame.count - sent, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR, crl_monotonic_nanoseconds() < deadline { continue }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  private func receiveFrame(by deadline: Int64) throws(RecordError) -> [UInt8]? {
    guard let head = try receive(4, by: deadline) else { return nil }
    let length = head.enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
    guard length > 0, length <= Int(CRLA_FRAME_LIMIT) else {
      throw RecordError("process \(target.number) answers with a frame of \(length) bytes, which is none")
    }
    return try receive(length, by: deadline)
  }

  private func receive(_ count: Int, by deadline: Int64) throws(RecordError) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var received = 0
    while received < count {
      // A call waits for up to a second.
      guard crl_monotonic_nanoseconds() < deadline else { throw AgentConnection.silence(target) }
      let number = bytes.withUnsafeMutableBytes {
        recv(socket, $0.baseAddress.map { $0 + received }, count - received, 0)
      }
      if number < 0, errno == EINTR { continue }
      if number < 0, errno == EAGAIN {
        if target.isStopped { throw AgentConnection.silence(target) }
        continue
      }
      guard number > 0 else { return nil }
      received += number
    }
    return bytes
  }
}
