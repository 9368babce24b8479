// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@Suite("The programs that tests look at", .ownThread) struct VictimTests {
  @Test(
    "each ends when the process ends that has started it",
    arguments: [("recorded-victim", "idle"), ("hang-victim", "idle"), ("kept-victim", "idle")])
  func end(program: String, mode: String) throws {
    let victim = try Victim([mode], program: program)
    victim.letGo()
    #expect(victim.signal() == SIGIO)
  }
}
