// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let commonModes = RuleChapter(
    title: "Common modes",
    rules: [
      Rule(
        "R100", "The common pseudo-mode is recognised by the pointer of its name.",
        notShown: "Programs name it by its constant; ours recognises the name (M11).",
        test: "the common pseudo-mode is known by its name"),
      Rule(
        "R101", "An item that is added to the common modes is recorded, and enters each of them.",
        Script(
          Program(
            sources: [.idle],
            main: [.addCommonMode(1), .add(.s0, .common)] + contains(.s0, .common, .main, .other, .mode(2))),
          "contains(S0,common)=yes contains(S0,m0)=yes contains(S0,m1)=yes contains(S0,m2)=no")),
      Rule(
        "R102", "A mode that becomes common is entered by the common items; making it so again changes nothing.",
        Script(
          Program(
            sources: [.idle],
            main: [.add(.s0, .common), .addCommonMode(1)] + contains(.s0, .other)
              + [.remove(.s0, .other), .addCommonMode(1)] + contains(.s0, .other)),
          "contains(S0,m1)=yes contains(S0,m1)=no")),
      Rule(
        "R103", "An item that is removed from one mode stays common, and enters later common modes.",
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
        "R104", "Removing from the common modes takes a common item out of each, also where it was added by name.",
        Script(
          Program(
            sources: [.idle, .idle],
            main: .adds(.s0, .s1) + [
              .add(.s0, .other), .add(.s0, .common), .remove(.s0, .common), .remove(.s1, .common),
            ] + contains(.s0, .common, .main, .other) + contains(.s1, .main)),
          "contains(S0,common)=no contains(S0,m0)=no contains(S0,m1)=yes contains(S1,m0)=yes")),
      Rule(
        "R105", "What is invalidated, or fires for the last time, is common no more.",
        Script(
          Program(
            sources: [.idle], timers: [.at(1)],
            main: [.add(.t0, .common), .runs()] + contains(.t0, .common) + [.add(.s0, .common), .invalidate(.s0)]
              + contains(.s0, .common)),
          "@1 1m0 T0 0- =finished contains(T0,common)=no contains(S0,common)=no")),
      Rule(
        "R106", "An item that was removed from its modes one by one and is then invalidated stays common permanently.",
        Script(
          Program(
            observers: [.ofRuns],
            main: [.add(.o0, .common), .remove(.o0, .main)] + contains(.o0, .common) + [.invalidate(.o0)]
              + contains(.o0, .common)),
          coreFoundation: "contains(O0,common)=yes contains(O0,common)=yes",
          ours: "contains(O0,common)=no contains(O0,common)=no", [.m9])),
      Rule(
        "R107", "Making the pseudo-mode itself common overflows the stack.",
        notShown: "Core Foundation's process does not survive it.",
        test: "the common pseudo-mode cannot be made common"),
    ])

  private static func contains(_ item: Item, _ modes: ModeName...) -> [Action] {
    modes.map { .ask(.contains(item, $0)) }
  }
}
