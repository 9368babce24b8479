// SPDX-License-Identifier: Apache-2.0

import CRunLoopToolKit
import Foundation
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopToolKit
import Testing

@Suite("Files and processes of another user", .ownThread) struct ForeignFilesTests {
  /// A directory with a program that replaces the symbolizer.
  private static func symbolizer(_ script: String) throws -> URL {
    let folder = URL(fileURLWithPath: "/tmp/runloop-symbolizer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    chmod(folder.path, 0o755)
    let program = folder.appendingPathComponent("llvm-symbolizer")
    try Data("#!/bin/sh\n\(script)\n".utf8).write(to: program)
    chmod(program.path, 0o755)
    setenv("PATH", folder.path, 1)
    return folder
  }

  @Test(
    "another user's files are read by a symbolizer with that user's rights, without environment or terminal",
    .enabled(if: geteuid() == 0, "only root can take another user's rights"))
  func rights() async {
    await #expect(processExitsWith: .success) {
      setenv("SECRET", "4711", 1)
      let script = """
        PATH=/usr/bin:/bin
        if (: </dev/tty) 2>/dev/null; then terminal=1; else terminal=0; fi
        printf 'name\\nfile:%s:1\\n\\nname\\nfile:%s:1\\n\\nname\\nfile:%s:1\\n\\nname\\nfile:%s:1\\n\\n' \
          "$(id -u)" "$(id -G | wc -w)" "${SECRET:-1}" "$((terminal + 1))"
        """
      let folder = try ForeignFilesTests.symbolizer(script)
      defer { try? FileManager.default.removeItem(at: folder) }
      let frames = ExternalSymbolizer(of: 65533).frames(at: [1, 2, 3, 4], in: "/bin/sh")
      #expect(frames.compactMap { $0.first?.line } == [65533, 1, 1, 1])
      let own = ExternalSymbolizer().frames(at: [1, 2, 3, 4], in: "/bin/sh")
      #expect(own.first?.first?.line == 0)
    }
  }

  @Test(
    "another user's file is opened without root's file capabilities, which the tool may hold",
    .enabled(if: geteuid() == 0, "only root can give it"))
  func capabilities() async {
    await #expect(processExitsWith: .success) {
      let path = "/tmp/runloop-capabilities-\(UUID().uuidString)"
      let file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600)
      close(file)
      defer { unlink(path) }
      func opens() -> Bool {
        let file = open(path, O_RDONLY)
        if file >= 0 { close(file) }
        return file >= 0
      }
      // Root's capabilities stay permitted, and those for files are made effective again.
      #expect(seteuid(65533) == 0)
      #expect(!opens())
      var given = crlt_files()
      given.capabilities = 1 << 1 | 1 << 2
      crlt_files_end(&given)
      #expect(geteuid() == 65533 && opens())
      let isOpenedForOthers = try UserRights(of: 0).openingFiles { () throws(RecordError) in opens() }
      #expect(!isOpenedForOthers && opens())
    }
  }

  @Test("a symbolizer that takes too long is killed with all its children, and not asked again")
  func deadline() async {
    await #expect(processExitsWith: .success) {
      alarm(900)
      let mark = "1000.\(UInt32.random(in: 1_000_000...UInt32.max))"
      let folder = try ForeignFilesTests.symbolizer("PATH=/usr/bin:/bin\nsleep \(mark) &\nsleep \(mark)")
      defer { try? FileManager.default.removeItem(at: folder) }
      let symbolizer = ExternalSymbolizer(seconds: 1)
      #expect(symbolizer.frames(at: [1], in: "/bin/sh").isEmpty)
      // The symbolizer is not asked a second time.
      setenv("PATH", "/nowhere", 1)
      #expect(symbolizer.frames(at: [1], in: "/bin/sh").isEmpty)
      func lives() -> Bool {
        let numbers = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).filter { Int($0) != nil }
        return numbers.contains {
          let words = (try? String(contentsOfFile: "/proc/\($0)/cmdline", encoding: .utf8)) ?? ""
          return words == "sleep\0\(mark)\0"
        }
      }
      // Killed processes are gone once init has noticed.
      while lives() { usleep(1000) }
    }
  }

  @Test("an endless symbolizer reply is cut off")
  func endless() async {
    await #expect(processExitsWith: .success) {
      alarm(900)
      let folder = try ForeignFilesTests.symbolizer("PATH=/usr/bin:/bin\nyes name")
      defer { try? FileManager.default.removeItem(at: folder) }
      #expect(ExternalSymbolizer(seconds: 600).frames(at: [1], in: "/bin/sh").isEmpty)
    }
  }

  /// A program with two sections, one of which names a file with debugging information.
  private func program(naming link: String) -> Data {
    var bytes = [UInt8](repeating: 0, count: 64)
    func put(_ value: Int, _ size: Int, at place: Int) {
      for index in 0..<size { bytes[place + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
    }
    bytes.replaceSubrange(0..<6, with: [0x7f, 0x45, 0x4c, 0x46, 2, 1])
    let names = Array("\0.shstrtab\0.gnu_debuglink\0".utf8)
    let content = Array(link.utf8) + [0, 0, 0, 0, 0]
    put(64 + names.count + content.count, 8, at: 40)
    put(64, 2, at: 58)
    put(3, 2, at: 60)
    put(1, 2, at: 62)
    bytes += names + content
    for (name, place, size) in [(0, 0, 0), (1, 64, names.count), (11, 64 + names.count, content.count)] {
      let start = bytes.count
      bytes += [UInt8](repeating: 0, count: 64)
      put(name, 4, at: start)
      put(place, 8, at: start + 24)
      put(size, 8, at: start + 32)
    }
    return Data(bytes)
  }

  @Test("a program whose debugging information is a pipe or an unexpected file is not given to a symbolizer")
  func debugLink() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent(".debug"), withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    #expect(mkfifo(folder.appendingPathComponent("pipe").path, 0o644) == 0)
    #expect(mkfifo(folder.appendingPathComponent(".debug/hidden").path, 0o644) == 0)
    try Data().write(to: folder.appendingPathComponent("regular"))
    let path = folder.appendingPathComponent("program").path
    let expected = [
      "regular": true, "missing": true, "pipe": false, "hidden": false, "../pipe": false, "/dev/null": false, "": false,
    ]
    for (link, isKept) in expected {
      try program(naming: link).write(to: URL(fileURLWithPath: path))
      #expect(ExternalSymbolizer().isKept(path, []) == isKept, "\(link)")
    }
    #expect(ExternalSymbolizer().isKept("/proc/self/exe", []))
  }

  @Test("the level of a truncated file is not held, which is reported")
  func cutOff() async {
    await #expect(processExitsWith: .success) {
      let victim = try Victim(["idle"], level: "off")
      let path = try #require(victim.file)
      let descriptor = open(path, O_RDWR | O_CLOEXEC)
      defer { close(descriptor) }
      let file = try RecordFile(descriptor: descriptor, path: path, isWritable: true)
      let hold = try LevelHold(file, 1)
      victim.kill()
      try #require(ftruncate(descriptor, 0) == 0)
      hold.release()
      #expect(throws: RecordError.self) { try LevelHold(file, 2) }
      Parking(file)?.wait()
    }
  }
}

@Suite("An agent that is hostile", .ownThread) struct HostileAgentTests {
  /// Takes the place of this process's own agent; `answer` writes to each connection.
  private static func listen(_ answer: @escaping @Sendable (Int32) -> Void) throws {
    // So that a tool finds it that knows only the environment at the process's start.
    unsetenv("RUNLOOP_DIR")
    unsetenv("XDG_RUNTIME_DIR")
    _ = RunLoopCore.RunLoop.current.run(mode: .default, for: .zero)
    let directory = try #require(Instruments.directory)
    let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = "\(directory)/agent"
    unlink(path)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let answered = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(answered == 0 && Glibc.listen(socket, 8) == 0)
    Foundation.Thread.detachNewThread {
      while true {
        let peer = accept(socket, nil, nil)
        guard peer >= 0 else { return }
        var request = [UInt8](repeating: 0, count: 4096)
        _ = recv(peer, &request, request.count, 0)
        answer(peer)
        close(peer)
      }
    }
  }

  private static func send(_ peer: Int32, _ bytes: [UInt8]) -> Bool {
    Glibc.send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  @Test("an agent that trickles bytes is waited for no longer than a silent one")
  func drip() async {
    await #expect(processExitsWith: .success) {
      alarm(600)
      try HostileAgentTests.listen { peer in
        guard HostileAgentTests.send(peer, [232, 3, 0, 0]) else { return }
        while HostileAgentTests.send(peer, [32]) { usleep(300_000) }
      }
      let session = runloop("dump", "\(getpid())")
      #expect(session.status == 1)
      #expect(session.complaints.first?.contains("does not answer") == true)
    }
  }

  @Test("an agent that replies endlessly is cut off before memory is full")
  func flood() async {
    await #expect(processExitsWith: .success) {
      alarm(600)
      let text = Array(#"{"loop": "\#(String(repeating: "A", count: 60_000))"}"#.utf8)
      let frame = (0..<4).map { UInt8(truncatingIfNeeded: text.count >> (8 * $0)) } + text
      try HostileAgentTests.listen { peer in while HostileAgentTests.send(peer, frame) {} }
      for command in ["dump", "why-alive"] {
        let session = runloop(command, "\(getpid())")
        #expect(session.status == 1)
        // On a slow machine, the request may time out before the response exceeds the limit.
        let complaint = session.complaints.first ?? ""
        #expect(complaint.contains("answers with more than") || complaint.contains("does not answer"))
      }
    }
  }
}
