// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

/// The files that the project creates at callers' paths.
@Suite struct NewFileTests {
  /// Runs a body with a scratch directory, which is then removed.
  private func inScratch(_ body: (String) throws -> Void) throws {
    var template = Array("/tmp/RunLoopCoreTests.XXXXXX".utf8CString)
    let directory = String(cString: try #require(mkdtemp(&template)))
    defer {
      for name in names(in: directory) { _ = remove("\(directory)/\(name)") }
      rmdir(directory)
    }
    try body(directory)
  }

  private func names(in directory: String) -> [String] {
    guard let list = opendir(directory) else { return [] }
    defer { closedir(list) }
    var names: [String] = []
    while let entry = readdir(list) {
      names.append(withUnsafePointer(to: &entry.pointee.d_name.0) { String(cString: $0) })
    }
    return names.filter { $0 != "." && $0 != ".." }.sorted()
  }

  private func write(_ text: String, to descriptor: Int32) {
    _ = text.withCString { Glibc.write(descriptor, $0, strlen($0)) }
  }

  private func read(_ path: String) -> String? {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = Glibc.read(file, &bytes, 100)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// The failing call, or "nothing".
  private func failure(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "nothing"
    } catch {
      return (error as? SystemError).map { "\($0.call):\($0.number)" } ?? "\(error)"
    }
  }

  // The argument is the result of the call on file systems without unnamed files.
  @Test("a file gets its name once it is complete, readable only by its user", arguments: [nil, EOPNOTSUPP, EISDIR])
  func whole(failure number: Int32?) throws {
    try inScratch { directory in
      let path = directory + "/file"
      let make: () throws -> Void = {
        let file = try NewFile(path: path)
        write("new", to: file.descriptor.number)
        #expect(!names(in: directory).contains("file"))
        try file.finish()
      }
      try planned(number, make)
      #expect(read(path) == "new")
      #expect(names(in: directory) == ["file"])
      var status = stat()
      #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
  }

  @Test("an unfinished file leaves nothing behind", arguments: [nil, EOPNOTSUPP])
  func unfinished(failure number: Int32?) throws {
    try inScratch { directory in
      try planned(number) {
        let file = try NewFile(path: directory + "/file")
        write("new", to: file.descriptor.number)
      }
      #expect(names(in: directory).isEmpty)
    }
  }

  private func planned(_ number: Int32?, _ body: () throws -> Void) throws {
    #if DEBUG
      let plan = FaultPlan()
      if let number { plan.plan(.openFile, .fails(number)) }
      try plan.rule { try body() }
    #else
      try body()
    #endif
  }

  @Test("a process that has the old file open does not see the new one")
  func held() throws {
    try inScratch { directory in
      let path = directory + "/file"
      let held = open(path, O_RDWR | O_CREAT, 0o666)
      defer { close(held) }
      let file = try NewFile(path: path)
      write("new", to: file.descriptor.number)
      try file.finish()
      var status = stat()
      #expect(fstat(held, &status) == 0 && status.st_size == 0 && status.st_nlink == 0)
      #expect(read(path) == "new")
    }
  }

  @Test("a link or anything else at the path that is not a file is neither followed nor replaced")
  func others() throws {
    try inScratch { directory in
      let path = directory + "/file"
      let victim = directory + "/victim"
      close(open(victim, O_WRONLY | O_CREAT, 0o600))
      #expect(symlink(victim, path) == 0)
      #expect(failure { _ = try NewFile(path: path) } == "open:\(ELOOP)")
      unlink(path)
      #expect(mkfifo(path, 0o600) == 0)
      #expect(failure { _ = try NewFile(path: path) } == "open:\(EEXIST)")
      #expect(failure { _ = try NewFile(path: "/dev/null") } == "open:\(EEXIST)")
      #expect(failure { _ = try NewFile(path: directory + "/") } == "open:\(EISDIR)")
      #expect(failure { _ = try NewFile(path: directory + "/..") } == "open:\(EISDIR)")
      #expect(failure { _ = try NewFile(path: "") } == "open:\(ENOENT)")
      #expect(failure { _ = try NewFile(path: directory + "/none/file") } == "open (directory):\(ENOENT)")
      #expect(failure { _ = try NewFile(path: victim + "\0.txt") } == "open:\(EINVAL)")
      #expect(failure { _ = try NewFile(path: victim + "\0/file") } == "open:\(EINVAL)")
      #expect(names(in: directory) == ["file", "victim"])
    }
  }
}

/// The environment, restricted to trusted values.
@Suite struct EnvironmentTests {
  @Test("an empty directory in PATH does not mean the working directory")
  func path() async {
    await #expect(processExitsWith: .success) {
      setenv("PATH", ":/a::/b/:", 1)
      #expect(Environment.programDirectories == ["/a", "/b/"])
      setenv("PATH", "", 1)
      #expect(Environment.programDirectories.isEmpty)
      unsetenv("PATH")
      #expect(Environment.programDirectories == ["/usr/local/bin", "/usr/bin", "/bin"])
      #expect(Environment.value("PATH") == nil)
      #expect(Environment.value("A\0B") == nil)
    }
  }
}
