// SPDX-License-Identifier: Apache-2.0

import CRunLoopToolKit
import Glibc
import RunLoopToolKit
import Testing

@Suite("The choice of a frame") struct FrameChoiceTests {
  @Test("a closure in main.swift is attributed to top-level code")
  func topLevel() {
    let frame = { (symbol: String) in CodeFrame(symbol: symbol, file: "main.swift", line: 3) }
    #expect(FrameChoice.site([frame("$s4mainyycfU_")])?.function == "closure #1 in top-level code")
    #expect(
      FrameChoice.site([frame("$s4mainyycfU_yyXEfU0_")])?.function == "closure #2 in closure #1 in top-level code")
  }

  @Test(
    "a program's extension of a foreign type belongs to the program, and the type's own functions do not",
    arguments: [
      // extension RunLoop { func userPost() { perform { … } } }
      ("$s11RunLoopCore0aB0C6victimE8userPostyyF", "RunLoop.userPost()"),
      ("$s11RunLoopCore0aB0C6victimE8userPostyyFyyYbcfU_", "closure #1 in RunLoop.userPost()"),
      ("$s14RunLoopThreads14ResidentThreadC6victimE8userPostyyF", "ResidentThread.userPost()"),
      // extension Duration and extension Date
      ("$ss8DurationV6victimE8userPostyy11RunLoopCore0eF0CFyyYbcfU_", "closure #1 in Duration.userPost(_:)"),
      ("$s20FoundationEssentials4DateV6victimE8userPostyy11RunLoopCore0gH0CFTf4nd_n", "specialized Date.userPost(_:)"),
      ("$s6victim12hangDispatchyys6UInt32VF", "hangDispatch(_:)"),
      ("$s11RunLoopCore0aB0C7performySbyyYbcnF", nil),
      // Thread.wait, specialized for a type and a closure.
      (
        "$s14RunLoopThreads6ThreadC4wait3for2of5until5beginyx_AC0aB4Core4TickVyyAA0D5ErrorOYKXEtAMYKAA7AwaitedRzlFAA"
          + "0D3EndC_Tg504$s14ab8Threads6d39C4wait3for2of5until5beginyx_AC0aB4Core4k8VyyAA0D5l13OYKXEtAMYKAA7M18RzlFfA2_"
          + "yyAMYKcfU_Tf1nnncn_n", nil
      ),
      ("$s14RunLoopSockets6SocketC0aB4CoreE3fooyyF", nil),
      ("$sSTsE7forEachyyy7ElementQzKXEKF", nil),
      ("$sSa6appendyyxnF", nil),
      ("$s10Foundation6NSLockC4lockyyF", nil),
    ] as [(String, String?)])
  func extensions(symbol: String, function: String?) {
    let frame = CodeFrame(symbol: symbol, file: "Program.swift", line: 3)
    #expect(FrameChoice.site([frame])?.function == function)
    let called = FrameChoice.function([frame])
    if let function {
      #expect(called == .place(CodePlace(function: function, file: "Program.swift", line: 3)))
    } else {
      #expect(called == .nobodys)
    }
  }

  @Test("optimizer suffixes on a symbol do not turn a thunk or a closure forwarder into a function")
  func suffixes() {
    let frame = { (symbol: String) in CodeFrame(symbol: symbol, file: "main.swift", line: 3) }
    for thunk in ["$sIeg_IyB_TR", "$sIg_Ieg_TRTA.7"] {
      #expect(FrameChoice.function([frame(thunk)]) == .nobodys)
      #expect(FrameChoice.site([frame(thunk)]) == nil)
    }
    let closure = "$s6victim12hangDispatchyys6UInt32VFyyYbcfU_"
    let place = CodePlace(function: "closure #1 in hangDispatch(_:)", file: "main.swift", line: 3)
    #expect(
      FrameChoice.function([frame("\(closure)TA.1")])
        == .forwards(symbol: closure, CodePlace(function: "closure #1 in hangDispatch(_:)")))
    #expect(FrameChoice.function([frame(closure), frame("\(closure)TA.1")]) == .place(place))
    #expect(FrameChoice.function([frame("\(closure).2")]) == .place(place))
  }

  /// `f(_:)` of module `m`, whose argument is the metatype of a type that contains two of the next, and so on.
  private func symbol(depth: Int) -> String {
    let letters = (0..<depth - 1).map { String(UnicodeScalar(UInt8(ascii: "E") + UInt8($0))) }
    return "$s1m1fyyAA1PVy" + String(repeating: "ADy", count: depth - 1) + "S2iG" + letters.map { "A\($0)G" }.joined()
      + "mF"
  }

  /// The text of a mangled name, or nil if there is none or it is too long.
  private func text(depth: Int, isQualified: Bool) -> String? {
    let bytes = crlt_demangle(symbol(depth: depth), isQualified ? 1 : 0)
    defer { free(bytes) }
    return bytes.map { String(cString: $0) }
  }

  @Test("potentially long names are demangled by a child process, and overlong texts are rejected")
  func longNames() {
    for depth in [2, 5, 12] {
      let whole = text(depth: depth, isQualified: true)
      #expect(whole?.split(separator: "Swift.Int").count == 1 << depth + 1)
      #expect(text(depth: depth, isQualified: false) == "f(_:)")
    }
    #expect(text(depth: 20, isQualified: true) == nil)
  }
}
