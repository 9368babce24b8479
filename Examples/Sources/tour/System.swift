// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents

@MainActor func program() async throws -> String {
  let program = try await SpawnedProcess.run("sh", ["-c", "uname -sr; exit 3"], deadline: .seconds(10))
  guard program.status == .exited(code: 3), let line = program.outputText.split(separator: "\n").first else {
    throw Unexpected("\(program)")
  }
  return "sh printed \"\(line)\" and has \(program.status)"
}

@MainActor func files() async throws -> String {
  var template = Array("/tmp/tour-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { throw Unexpected("no directory (\(errno))") }
  let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  let path = directory + "/notes"
  defer {
    unlink(path)
    rmdir(directory)
  }
  let changes = try FileChangeSource.changes(
    of: .init(directory), events: [.created, .written, .removed], on: .main)
  let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
  guard file >= 0 else { throw Unexpected("no file (\(errno))") }
  write(file, "hello", 5)
  close(file)
  unlink(path)
  var kinds: [String] = []
  for await change in changes {
    kinds.append("\(change.kind)")
    if change.kind == .removed { break }
  }
  guard kinds == ["created", "written", "removed"] else { throw Unexpected("\(kinds)") }
  return "notes: " + kinds.joined(separator: ", ")
}
