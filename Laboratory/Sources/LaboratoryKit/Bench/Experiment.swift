// SPDX-License-Identifier: Apache-2.0

/// One claim of the articles, and a small program that puts it to the test on the real run loop.
///
/// To add one: write a value of this protocol in `Experiments/`, enter it in ``Catalog``, and name in
/// `Tests/Mutants` the ways of breaking a loop that must make it fail.
protocol Experiment: Sendable {
  /// The group's letter and the number within the group.
  var id: String { get }
  /// What the experiment is about, in a few words.
  var title: String { get }
  /// The articles that make the claim.
  var articles: [Article] { get }
  /// What the articles say.
  var claim: String { get }
  /// Whether the claim is right about Apple's loop.
  ///
  /// An article is never called wrong for what only ours does otherwise: that is the ``difference``.
  var verdict: Verdict { get }
  /// What the verdict rests on: a rule of Core Foundation, or what an article prints.
  var evidence: String { get }
  /// What is otherwise here, as the experiment shows.
  var difference: Difference { get }
  /// Whether the experiment is about the main loop, and so can only be run on the main thread.
  var needsMainThread: Bool { get }
  /// Whether it looks at dispatch's own workers, which nobody else must have used before.
  var needsFreshWorkers: Bool { get }
  /// Whether its loops have to be among those of the process that leave records, which are the first 64 that live.
  var needsRecords: Bool { get }

  /// Runs loops on a bench and returns what was observed, beside what the verdict requires.
  func run(on bench: Bench) -> Outcome
}

extension Experiment {
  /// Most experiments show the same here as on Apple's systems.
  var difference: Difference { .nothing }
  /// Most experiments make their own loops and can be run anywhere.
  var needsMainThread: Bool { false }
  var needsFreshWorkers: Bool { false }
  var needsRecords: Bool { false }
}

/// Whether a claim of the articles is right about Apple's loop.
enum Verdict: Sendable, Hashable {
  /// Apple's loop does what the articles say.
  case confirmed
  /// The claim is right in part; the text says what is right instead.
  case corrected(String)
  /// The claim is wrong; the text says what is right.
  case refuted(String)

  /// The verdict in one word.
  var word: String {
    switch self {
    case .confirmed: "confirmed"
    case .corrected: "corrected"
    case .refuted: "refuted"
    }
  }

  /// What is right instead of the claim; nil if the claim stands.
  var correction: String? {
    switch self {
    case .confirmed: nil
    case .corrected(let text), .refuted(let text): text
    }
  }
}
