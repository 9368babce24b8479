// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Downloads into a directory where an attacker knows the names and can create files.
@Suite struct PlantedFileTests {
  private static let genuine = Array("GENUINE GENUINE ".utf8)

  /// Creates a directory that only this test uses.
  private func scratch() throws -> String {
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    try #require(mkdir(path, 0o700) == 0)
    return path
  }

  private func remove(_ directory: String) {
    guard let list = opendir(directory) else { return }
    while let entry = readdir(list) {
      unlink("\(directory)/" + withUnsafePointer(to: &entry.pointee.d_name.0) { String(cString: $0) })
    }
    closedir(list)
    rmdir(directory)
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

  private func download(to path: String) async throws -> (response: HTTP.Response, range: String?) {
    let range = Box<String?>(nil)
    let server = try LyingServer { exchange in
      range.value = exchange.field("Range")
      if let first = exchange.field("Range")?.split(whereSeparator: { "=-".contains($0) }).last.flatMap({ Int($0) }) {
        exchange.answer(
          Array(Self.genuine[first...]), status: "206 Part",
          ["Content-Range: bytes \(first)-\(Self.genuine.count - 1)/\(Self.genuine.count)", "ETag: \"v1\""])
      } else {
        exchange.answer(Self.genuine, ["ETag: \"v1\""])
      }
    }
    let note = PartNote(url: PartNote.name(of: server.url("/f")), validator: "\"v1\"", total: 16)
    RunLoopTestPath.write(Array(note.text.utf8), to: path + ".part.json")
    let client = HTTP.Client()
    defer { client.stop() }
    return (try await client.download(HTTP.Request(server.url("/f")), to: path), range.value)
  }

  @Test(
    "a partial file that is not the user's own is neither written to, followed, nor resumed",
    arguments: ["link", "dangling", "hard link", "writable", "fifo", "directory"])
  func parts(_ kind: String) async throws {
    let directory = try scratch()
    let path = directory + "/file"
    defer { remove(directory) }
    let victim = directory + "/victim"
    RunLoopTestPath.write(Array("secret".utf8), to: victim)
    switch kind {
    case "link": try #require(symlink(victim, path + ".part") == 0)
    case "dangling": try #require(symlink(directory + "/made", path + ".part") == 0)
    case "hard link": try #require(Glibc.link(victim, path + ".part") == 0)
    case "writable":
      RunLoopTestPath.write(Array("ATTACK".utf8), to: path + ".part")
      chmod(path + ".part", 0o666)
    case "fifo": try #require(mkfifo(path + ".part", 0o600) == 0)
    default: try #require(mkdir(path + ".part", 0o700) == 0)
    }
    let (response, range) = try await download(to: path)
    #expect(response.status == 200)
    #expect(range == nil)
    #expect(RunLoopTestPath.read(path) == Self.genuine)
    #expect(RunLoopTestPath.read(victim) == Array("secret".utf8))
    #expect(access(directory + "/made", F_OK) != 0)
    var status = stat()
    try #require(lstat(path, &status) == 0)
    #expect(status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1 && status.st_mode & 0o022 == 0)
    if kind == "directory" { rmdir(path + ".part") }
    // No file of the download itself is left.
    #expect(!names(in: directory).contains { $0.hasPrefix(".") })
  }

  @Test("another user's partial file is not resumed", .enabled(if: geteuid() == 0))
  func foreign() async throws {
    let directory = try scratch()
    let path = directory + "/file"
    defer { remove(directory) }
    RunLoopTestPath.write(Array("ATTACK".utf8), to: path + ".part")
    try #require(chown(path + ".part", 54_322, 54_322) == 0)
    let (_, range) = try await download(to: path)
    #expect(range == nil)
    #expect(RunLoopTestPath.read(path) == Self.genuine)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_uid == geteuid())
    #expect(RunLoopTestPath.read(path + ".part") == Array("ATTACK".utf8))
  }

  @Test("a part that is let go can be continued, although a forked child has a copy of its descriptor")
  func forked() async {
    // The child would have copies of other tests' descriptors, too.
    await #expect(processExitsWith: .success) {
      let directory = "/tmp/RunLoopHTTPTests.forked.\(getpid())"
      try #require(mkdir(directory, 0o700) == 0)
      let path = directory + "/file"
      let file = try PartFile(path, url: "http://a/", resumes: true)
      let child = forkProcess()
      if child == 0 { while true { pause() } }
      defer {
        kill(child, SIGKILL)
        _ = ForkedEnd(waitingFor: child)
        unlink(path + ".part")
        rmdir(directory)
      }
      #expect(throws: HTTP.Error.self) { try PartFile(path, url: "http://a/", resumes: true) }
      file.letGo()
      _ = try PartFile(path, url: "http://a/", resumes: true)
    }
  }

  @Test("a note that is a link, has a second name or is writable by others is not trusted", arguments: [0, 1, 2])
  func notes(_ kind: Int) throws {
    let directory = try scratch()
    let path = directory + "/file"
    defer { remove(directory) }
    RunLoopTestPath.write(Array("GENUIN".utf8), to: path + ".part")
    RunLoopTestPath.write(
      Array(PartNote(url: "http://a/", validator: "\"v1\"", total: 16).text.utf8), to: directory + "/note")
    if kind == 0 { try #require(symlink("note", path + ".part.json") == 0) }
    if kind == 1 { try #require(Glibc.link(directory + "/note", path + ".part.json") == 0) }
    if kind == 2 {
      try #require(rename(directory + "/note", path + ".part.json") == 0)
      chmod(path + ".part.json", 0o666)
    }
    let file = try PartFile(path, url: "http://a/", resumes: true)
    #expect(file.kept.received == 0)
    file.letGo()
    // The same note owned by the user alone is trusted.
    unlink(path + ".part.json")
    RunLoopTestPath.write(
      Array(PartNote(url: "http://a/", validator: "\"v1\"", total: 16).text.utf8), to: path + ".part.json")
    #expect(try PartFile(path, url: "http://a/", resumes: true).kept.received == 6)
  }

  @Test("a partial file is accessible to its user only, and the final file as the umask allows")
  func permissions() async throws {
    let directory = try scratch()
    let path = directory + "/file"
    defer { remove(directory) }
    let file = try PartFile(path, url: "http://a/", resumes: true)
    var status = stat()
    #expect(stat(path + ".part", &status) == 0 && status.st_mode & 0o777 == 0o600)
    try Self.genuine.withUnsafeBytes { try file.write($0) }
    #expect(file.putAway(unless: { false }) == nil)
    let plain = open(directory + "/plain", O_CREAT | O_WRONLY, 0o666)
    var expected = stat()
    #expect(fstat(plain, &expected) == 0)
    close(plain)
    #expect(stat(path, &status) == 0 && status.st_mode == expected.st_mode)
  }

  @Test("a path with a zero byte is an error, and the file of the truncated name is kept")
  func zeroBytes() async throws {
    let directory = try scratch()
    let path = directory + "/evil.sh"
    defer { remove(directory) }
    RunLoopTestPath.write(Array("original".utf8), to: path)
    let asked = Counter()
    let server = try LyingServer { exchange in
      asked.add()
      exchange.answer("new")
    }
    func failure(_ body: () async throws -> Void) async -> String {
      do {
        try await body()
        return "nothing"
      } catch { return (error as? HTTP.Error)?.code.name ?? "\(error)" }
    }
    let client = HTTP.Client()
    let download = await failure {
      _ = try await client.download(HTTP.Request(server.url()), to: path + "\0.jpg")
    }
    #expect(download == "fileFailed")
    let operation = client.operation(HTTP.Request(server.url()), output: .file(path + "\0.jpg"))
    let end = await withCheckedContinuation { continuation in
      operation.onCompletion(on: .immediately) { continuation.resume(returning: "\($0)") }
      operation.start()
    }
    #expect(end.contains("fileFailed"), "\(end)")
    var request = HTTP.Request(.post, server.url())
    request.body = .file(path + "\0.txt")
    let upload = request
    #expect(await failure { _ = try await client.data(for: upload) } == "invalidRequest")
    client.stop()
    for set: @Sendable (inout HTTP.Configuration) -> Void in [
      { $0.unixSocket = "/nonexistent\0x" }, { $0.unixSocket = "@nonexistent\0x" }, { $0.trust.roots = "/a\0b" },
      { $0.trust.certificate = .init(chain: "/a\0b", key: "/c") },
      { $0.trust.certificate = .init(chain: "/a", key: "/c\0d") },
      { $0.trust.certificate = .init(chain: "/a", key: "/c", password: "e\0f") },
    ] {
      var configuration = HTTP.Configuration()
      set(&configuration)
      let client = HTTP.Client(configuration)
      #expect(await failure { _ = try await client.data(for: HTTP.Request(server.url())) } == "invalidRequest")
      client.stop()
    }
    #expect(asked.value == 0)
    #expect(names(in: directory) == ["evil.sh"])
    #expect(RunLoopTestPath.read(path) == Array("original".utf8))
  }
}
