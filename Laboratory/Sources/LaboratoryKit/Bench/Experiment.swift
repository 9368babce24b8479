// SPDX-License-Identifier: Apache-2.0

/// One claim of the articles, and a small program that tests it on the real run loop.
///
/// To add one, write a type that conforms to this protocol in `Experiments/`, add it to ``Catalog``, and list in
/// `Tests/Mutants` the mutations of the loop that must make it fail.
protocol Experiment: Sendable {
  /// The group's letter and the number within the group.
  var id: String { get }
  /// The subject of the experiment, in a few words.
  var title: String { get }
  /// The articles that make the claim.
  var articles: [Article] { get }
  /// The claim of the articles.
  var claim: String { get }
  /// Whether the claim is correct for Apple's loop.
  ///
  /// An article is never refuted because of a behavior that is specific to this loop: that is the ``difference``.
  var verdict: Verdict { get }
  /// The basis of the verdict: a rule of Core Foundation, or the output that an article prints.
  var evidence: String { get }
  /// The difference that the experiment shows.
  var difference: Difference { get }
  /// Whether the experiment uses the main loop, and so must run on the main thread.
  var needsMainThread: Bool { get }
  /// Whether it observes Dispatch's worker threads, which must be unused before.
  var needsFreshWorkers: Bool { get }
  /// Whether its loops must be among the first 64 of the process, which are the ones that are recorded.
  var needsRecords: Bool { get }

  /// Runs loops on a bench, and returns the observations with those that the verdict requires.
  func run(on bench: Bench) -> Outcome
}

extension Experiment {
  /// Most experiments have the same result here as on Apple's systems.
  var difference: Difference { .nothing }
  /// Most experiments create their own loops and can run anywhere.
  var needsMainThread: Bool { false }
  var needsFreshWorkers: Bool { false }
  var needsRecords: Bool { false }
}

/// Whether a claim of the articles is correct for Apple's loop.
enum Verdict: Sendable, Hashable {
  /// Apple's loop behaves as the articles claim.
  case confirmed
  /// The claim is partly correct; the text corrects it.
  case corrected(String)
  /// The claim is wrong; the text states what is correct.
  case refuted(String)

  /// The verdict in one word.
  var word: String {
    switch self {
    case .confirmed: "confirmed"
    case .corrected: "corrected"
    case .refuted: "refuted"
    }
  }

  /// The correction of the claim, or nil if it is confirmed.
  var correction: String? {
    switch self {
    case .confirmed: nil
    case .corrected(let text), .refuted(let text): text
    }
  }
}
