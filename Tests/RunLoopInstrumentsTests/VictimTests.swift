// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import Testing

@Suite("The programs that tests look at", .ownThread) struct VictimTests {
  @Test(
    "each test program ends when the process that started it ends",
    arguments: [("recorded-victim", "idle"), ("hang-victim", "idle"), ("kept-victim", "idle")])
  func end(program: String, mode: String) throws {
    let victim = try Victim([mode], program: program)
    victim.letGo()
    #expect(victim.signal() == SIGIO)
  }

  @Test("a program whose input no test holds runs to its end, whatever its standard input is")
  func notHeld() throws {
    let process = Process()
    process.executableURL = Victim.program()
    process.arguments = ["exit"]
    process.environment = ["RUNLOOP_INSTRUMENTS": "off"]
    let input = Pipe()
    try input.fileHandleForWriting.close()
    process.standardInput = input
    try process.start()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit && process.terminationStatus == 0)
  }
}
