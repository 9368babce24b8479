// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import Testing

@testable import RunLoopToolKit

@Suite("The manual and the completions of the tool", .ownThread) struct ManualTests {
  @Test("the manual has each command with its help, and no line that formatters take for a macro")
  func page() {
    let page = runloop("manual").output
    for command in ObservingCommands.all {
      #expect(page.contains("\n.SS \(command.name)\n"), "\(command.name)")
    }
    let known = [".TH", ".SH", ".B ", ".I ", ".SS", ".PP", ".nf", ".fi"]
    let lines = page.split(separator: "\n")
    #expect(lines.filter { $0.hasPrefix(".") }.allSatisfy { line in known.contains { line.hasPrefix($0) } })
    #expect(!lines.contains { $0.hasPrefix("'") })
  }

  @Test("shell completions cover all commands and their options", arguments: ["--bash", "--zsh", "--fish"])
  func completions(_ shell: String) {
    let words = Set(
      runloop("manual", shell).output.split { !($0.isLetter || $0.isNumber || $0 == "-") }.map(String.init))
    for command in ObservingCommands.all {
      #expect(words.contains(command.name))
      for option in command.options.values + command.options.flags {
        // In fish, options after -l have no dashes.
        #expect(words.contains(shell == "--fish" ? String(option.dropFirst(2)) : option), "\(option)")
      }
    }
  }

  @Test("bash accepts the completion script, and completes an option with it")
  func bash() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    let script = runloop("manual", "--bash").output
    let ask = "COMP_WORDS=(runloop hangs --th); COMP_CWORD=2; _runloop; echo \"${COMPREPLY[*]}\""
    process.arguments = ["-c", script + "\n" + ask]
    let output = Pipe()
    process.standardOutput = output
    try process.start()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(text == "--threshold --thread\n")
  }

  @Test("help COMMAND prints that command's help, and --version the version")
  func help() {
    #expect(runloop("help", "hangs").output == runloop("hangs", "--help").output)
    #expect(runloop("help", "nosuch").status == CommandStatus.usageError.rawValue)
    #expect(runloop("--version").output.hasPrefix("runloop 0.1.0"))
    #expect(runloop("manual", "--bash", "--zsh").status == CommandStatus.usageError.rawValue)
  }

  @Test("with --exit-code, the status shows whether a loop hung and whether the record is complete")
  func exitCode() throws {
    let idle = try Victim(["idle"], level: "off")
    #expect(runloop("hangs", "\(idle.number)", "--for", "0.2", "--exit-code").status == 0)
    let hung = try Victim(["hang"], level: "off")
    var status = runloop("hangs", "\(hung.number)", "--for", "1", "--exit-code").status
    // On a busy machine a look may be too short.
    for seconds in [4, 16, 60] where status == 0 {
      status = runloop("hangs", "\(hung.number)", "--for", "\(seconds)", "--exit-code").status
    }
    #expect(status == CommandStatus.found.rawValue)
    #expect(runloop("hangs", "\(hung.number)", "--for", "0.2").status == 0)
  }
}
