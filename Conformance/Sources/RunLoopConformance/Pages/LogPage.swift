// SPDX-License-Identifier: Apache-2.0

/// The documentation's page of the logs of both loops for every rule.
package struct LogPage {
  private let coreFoundation: any Machine
  private let ours: any Machine

  package init() { self.init(coreFoundation: CoreFoundationMachine(), ours: RunLoopMachine()) }

  /// Creates a page with the logs of other machines.
  init(coreFoundation: any Machine, ours: any Machine) {
    self.coreFoundation = coreFoundation
    self.ours = ours
  }

  /// Runs the programs of some chapters, and returns their page.
  package func text(of chapters: [RuleChapter] = RuleChapter.ofCoreFoundation) -> String {
    var sections = [Self.head(chapters.flatMap(\.rules))]
    for chapter in chapters {
      sections.append("## \(chapter.title)")
      sections += chapter.rules.map(section)
    }
    return sections.joined(separator: "\n\n") + "\n"
  }

  private static func head(_ rules: [Rule]) -> String {
    let shown = rules.filter { !$0.scripts.isEmpty }
    let different = shown.count { $0.scripts.contains { !$0.differences.isEmpty } }
    return """
      # The rules on both loops

      What Core Foundation's loop and this one log of the same programs, rule by rule.

      ## Overview

      Of \(rules.count) rules of Core Foundation's loop and Foundation's runs, programs of one thread show \(shown.count): in \
      \(shown.count - different) both loops log the same, in \(different) a difference of <doc:Differences> has a part. Of \
      the others it is said why no program shows them. <doc:Rules> names the tests of every rule.

      A program is a value: items, blocks, what the loop's thread does, and what another thread does while the loop sleeps. \
      `.mode(0)` is the default mode, and a tick is a second of virtual time. A log has the letters of the rules: `E BT BS \
      BW AW X` are the stages of an observer, `E.1` is the second observer; `S0`, `T0` and `B0` are the first source, timer \
      and block; `S0+m0` and `S0-m0` say that a source was notified of a mode that it entered or left; `=stopped` is the result \
      of a run; `@3` says that it is tick 3 from here on, `1m0` that one run is active in mode 0, `0-` that none is; `~` \
      that the loop is waiting. A loop that would sleep forever is stopped.

      This page is made by `Documentation/conformance`, which runs the programs.
      """
  }

  private func section(_ rule: Rule) -> String {
    let here = rule.here.map { " *Here:* \($0)" } ?? ""
    let title = "### \(rule.name)\n\n\(rule.statement)\(here)"
    guard let reason = rule.reason else {
      return ([title] + rule.scripts.map(section)).joined(separator: "\n\n")
    }
    return title + "\n\nNo program shows it. \(reason)"
  }

  private func section(_ script: Script) -> String {
    let program = "```\n\(script.program.source(width: 100))\n```"
    let coreFoundation = coreFoundation.run(script.program).description
    let ours = ours.run(script.program).description
    if coreFoundation == ours { return program + "\n\n- Both: " + Self.code(ours) }
    let differences = script.differences.sorted().map { "\n- \($0): \($0.summary)." }.joined()
    return program + "\n\n- Core Foundation: \(Self.code(coreFoundation))\n- Ours: \(Self.code(ours))" + differences
  }

  private static func code(_ log: String) -> String { log.isEmpty ? "nothing." : "`\(log)`" }
}
