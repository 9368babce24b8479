// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let commonModes = RuleChapter(
    title: "Common modes",
    rules: [
      Rule(
        "R100",
        "The common pseudo-mode is recognised by the pointer of its name.",
        here: "The common pseudo-mode is recognised by its name (M11).",
        notShown: "Programs name it by its constant."),
      Rule(
        "R101",
        "An item added to the common pseudo-mode is a common item and enters every common mode.",
        Script(
          Program(
            sources: [.idle],
            main: [.addCommonMode(1), .add(.s0, .common)] + contains(.s0, .common, .main, .other, .mode(2))),
          "contains(S0,common)=yes contains(S0,m0)=yes contains(S0,m1)=yes contains(S0,m2)=no")),
      Rule(
        "R102",
        "All common items enter a mode that is made common; making it common again changes nothing.",
        Script(
          Program(
            sources: [.idle],
            main: [.add(.s0, .common), .addCommonMode(1)] + contains(.s0, .other)
              + [.remove(.s0, .other), .addCommonMode(1)] + contains(.s0, .other)),
          "contains(S0,m1)=yes contains(S0,m1)=no")),
      Rule(
        "R103",
        "An item that is removed from one concrete mode enters later common modes, even if it has joined another "
          + "loop.",
        here: "An item that is removed from one concrete mode enters later common modes, unless it has joined "
          + "another loop (M9).",
        Script(
          Program(
            sources: [.idle],
            main: [.add(.s0, .common), .remove(.s0, .main), .addCommonMode(1)] + contains(.s0, .common, .main, .other)),
          "contains(S0,common)=yes contains(S0,m0)=no contains(S0,m1)=yes"),
        Script(
          Program(
            timers: [.at(1)],
            main: [.add(.t0, .common), .remove(.t0, .main)] + contains(.t0, .common) + [.addCommonMode(1)]
              + contains(.t0, .common, .main, .other)),
          "contains(T0,common)=no contains(T0,common)=yes contains(T0,m0)=no contains(T0,m1)=yes")),
      Rule(
        "R104",
        "Removing a common item from the common pseudo-mode removes it from every common mode, even if it was added "
          + "to that mode by name; it stays in other modes.",
        Script(
          Program(
            sources: [.idle, .idle],
            main: .adds(.s0, .s1) + [
              .add(.s0, .other), .add(.s0, .common), .remove(.s0, .common), .remove(.s1, .common),
            ] + contains(.s0, .common, .main, .other) + contains(.s1, .main)),
          "contains(S0,common)=no contains(S0,m0)=no contains(S0,m1)=yes contains(S1,m0)=yes")),
      Rule(
        "R105",
        "An item that was invalidated, or has fired for the last time, is no longer common.",
        Script(
          Program(
            sources: [.idle], timers: [.at(1)],
            main: [.add(.t0, .common), .runs()] + contains(.t0, .common) + [.add(.s0, .common), .invalidate(.s0)]
              + contains(.s0, .common)),
          "@1 1m0 T0 0- =finished contains(T0,common)=no contains(S0,common)=no")),
      Rule(
        "R106",
        "An item that was removed from its modes one by one and is then invalidated stays common permanently.",
        here: "An item that was removed from its modes one by one and is then invalidated is no longer common (M9).",
        Script(
          Program(
            observers: [.ofRuns],
            main: [.add(.o0, .common), .remove(.o0, .main)] + contains(.o0, .common) + [.invalidate(.o0)]
              + contains(.o0, .common)),
          coreFoundation: "contains(O0,common)=yes contains(O0,common)=yes",
          ours: "contains(O0,common)=no contains(O0,common)=no", [.m9])),
      Rule(
        "R107",
        "Making the common pseudo-mode common overflows the stack.",
        here: "The common pseudo-mode cannot be made common (M9).",
        notShown: "Core Foundation's process does not survive it."),
    ])

  private static func contains(_ item: Item, _ modes: ModeName...) -> [Action] {
    modes.map { .ask(.contains(item, $0)) }
  }
}
