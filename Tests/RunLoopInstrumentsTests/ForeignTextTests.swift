// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopToolKit
import Testing

import class RunLoopThreads.ResidentThread
import enum RunLoopInstruments.Instruments

/// Names chosen by another user to attack or mislead the user of the tools.
@Suite("Foreign texts", .ownThread) struct ForeignTextTests {
  /// Terminal sequences (CSI in C1 and in C0), DEL, a mark that reverses the text after it, and a fake line.
  static let name = "x\u{9b}31mRED\u{9d}0;owned\u{9c}\u{7f}\u{1b}[2J\u{202e}abc\nFAKE LINE 1234 idle\u{2028}\u{e0041}"

  private func isHarmless(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy {
      $0.value >= 0x20 && !(0x7f...0x9f ~= $0.value) && !["\u{202e}", "\u{2028}", "\u{e0041}"].contains($0)
    }
  }

  @Test("foreign text is shown without its control characters, which JSON has as numeric escapes")
  func values() throws {
    #expect(ForeignText.shown("plain – ☃ 👨‍👩‍👧 \u{200d}") == "plain – ☃ 👨‍👩‍👧 \u{200d}")
    #expect(isHarmless(ForeignText.shown(Self.name)))
    #expect(ForeignText.shown("a\nb\tc\u{202e}d\u{7f}") == "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}")
    let quoted = ForeignText.quoted(Self.name)
    #expect(isHarmless(quoted))
    #expect(quoted.contains("\\u009b31mRED\\u009d0;owned\\u009c\\u007f\\u001b[2J\\u202eabc\\u000aFAKE"))
    // A reader of the document gets the same text back.
    let read = try JSONSerialization.jsonObject(with: Data("[\(quoted)]".utf8)) as? [String]
    #expect(read == [Self.name])
    #expect(ForeignText.quoted("</script>", isInPage: true) == "\"\\u003c/script\\u003e\"")
    for value in (0..<0x1_1000).compactMap(Unicode.Scalar.init) {
      let category = value.properties.generalCategory
      guard category == .control || category == .lineSeparator || category == .paragraphSeparator else { continue }
      #expect(ForeignText.shown("\(value)") == "\u{fffd}")
      #expect(!ForeignText.quoted("\(value)").unicodeScalars.contains(value))
    }
  }

  @Test("commands that print names strip their control sequences")
  func commands() async {
    await #expect(processExitsWith: .success) {
      let path = "/dev/shm/runloop-tests-\(UUID().uuidString)"
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      defer { try? FileManager.default.removeItem(atPath: path) }
      setenv("RUNLOOP_DIR", path, 1)
      let holder = Instruments.hold(.record)
      defer { holder.release() }
      let worker = try ResidentThread(name: ForeignTextTests.name)
      try worker.performAndWait {}
      while !worker.runLoop.isWaiting { usleep(100) }
      try Instruments.listen()
      try Instruments.writeRecord(to: path + "/flight", last: .seconds(3600))
      let own = "\(getpid())"
      for command in [
        ["ps", own], ["why-alive", own], ["dump", own], ["hangs", own, "--for", "0.2", "--threshold", "50"],
        ["postmortem", path + "/flight"],
      ] {
        let text = runloop(command)
        #expect(text.status == 0, "\(command): \(text.complaints)")
        for line in text.output.split(separator: "\n") {
          #expect(ForeignTextTests().isHarmless(String(line)), "\(command): \(line.debugDescription)")
          if command[0] != "dump" { #expect(!line.hasPrefix("FAKE"), "\(command)") }
        }
        let document = runloop(command + ["--json"])
        #expect(document.status == 0, "\(command): \(document.complaints)")
        #expect(ForeignTextTests().isHarmless(document.output), "\(command)")
        // Scripts read the original name.
        let lists = try document.json().values.compactMap { $0 as? [[String: Any]] }.joined()
        if command[0] != "hangs" { #expect(lists.contains { $0["thread"] as? String == ForeignTextTests.name }) }
      }
      let page = path + "/page.html"
      let trace = runloop("trace", "--from", path + "/flight", "--output", page)
      #expect(trace.status == 0, "\(trace.complaints)")
      let lines = try String(contentsOfFile: page, encoding: .utf8).split(separator: "\n")
      #expect(lines.contains { $0.contains("\\u009b31mRED") })
      for line in lines { #expect(ForeignTextTests().isHarmless(String(line).replacing("\t", with: ""))) }
    }
  }
}
