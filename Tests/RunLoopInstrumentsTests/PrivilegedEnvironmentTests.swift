// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import Testing

/// Programs with more rights than the user who starts them and sets their environment.
@Suite("The environment of a program with more rights", .ownThread) struct PrivilegedEnvironmentTests {
  /// The output of a program run as another user with an attacker's environment, optionally with its own group's
  /// rights.
  private func lines(isPrivileged: Bool) throws -> [String: String] {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try #require(mkdir(directory, 0o755) == 0)
    chmod(directory, 0o755)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let program = directory + "/program"
    try Victim.copy(program: "named-victim", to: program)
    try #require(chown(program, 0, 54_399) == 0)
    chmod(program, isPrivileged ? 0o2755 : 0o755)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    process.arguments = ["--reuid", "54322", "--regid", "54322", "--clear-groups", program, "environment"]
    process.environment = [
      "PATH": "/tmp/evil", "RUNLOOP_DIR": "/tmp/evil", "XDG_RUNTIME_DIR": "/tmp/evil", "http_proxy": "http://evil/",
      "SSLKEYLOGFILE": directory + "/keys", "QLOGDIR": directory, "CURL_SSL_BACKEND": "evil", "TERM": "xterm",
      "LISTEN_FDS": "x", "NOTIFY_SOCKET": "@evil", "WATCHDOG_USEC": "1000000", "RUNLOOP_INSTRUMENTS": "record",
      "LISTEN_PID": "x",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.start()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return Dictionary(
      text.split(separator: "\n").compactMap { line in
        line.firstIndex(of: " ").map { (String(line[..<$0]), String(line[line.index(after: $0)...])) }
      }, uniquingKeysWith: { $1 })
  }

  private static let canTry = geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0

  @Test("the environment of a privileged program chooses no file, program, directory or address", .enabled(if: canTry))
  func privileged() throws {
    let lines = try lines(isPrivileged: true)
    #expect(
      lines == [
        "privileged": "true", "directories": "/usr/local/bin:/usr/bin:/bin", "activation": "0", "watchdog": "false",
        "ports": "/tmp/runloop-54322", "record": "-", "proxy": "-", "SSLKEYLOGFILE": "false", "QLOGDIR": "false",
        "CURL_SSL_BACKEND": "false", "terminal": "xterm",
      ])
  }

  @Test("the environment of an unprivileged program chooses files and directories", .enabled(if: canTry))
  func plain() throws {
    let lines = try lines(isPrivileged: false)
    #expect(
      lines == [
        "privileged": "false", "directories": "/tmp/evil", "activation": "fails", "watchdog": "true",
        "ports": "/tmp/evil/runloop", "record": "/tmp/evil", "proxy": "http://evil/", "SSLKEYLOGFILE": "true",
        "QLOGDIR": "true", "CURL_SSL_BACKEND": "true", "terminal": "xterm",
      ])
  }
}
