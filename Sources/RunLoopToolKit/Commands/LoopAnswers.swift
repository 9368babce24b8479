// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments

/// A process's response about one of its loops.
struct LoopAnswer {
  /// An item that keeps the loop alive.
  struct Reason {
    let kind: String
    let modes: [String]
    let code: UInt64
    let added: [UInt64]
    let detail: String

    init?(_ document: AgentDocument) {
      guard let kind = document["kind"]?.text, let detail = document["detail"]?.text else { return nil }
      self.kind = kind
      self.detail = detail
      modes = document["modes"]?.list?.compactMap(\.text) ?? []
      code = document["code"]?.address ?? 0
      added = document["added"]?.list?.compactMap(\.address) ?? []
    }
  }

  let thread: Int
  let name: String
  let mode: String?
  let isRunning: Bool
  let depth: Int
  private(set) var reasons: [Reason] = []
  private(set) var description = ""
  /// The call stacks that added items, by the items' addresses.
  private(set) var places: [UInt64: [UInt64]] = [:]

  private init?(_ frame: AgentDocument) {
    guard let thread = frame["tid"]?.int, let name = frame["thread"]?.text else { return nil }
    self.thread = Int(thread)
    self.name = name
    mode = frame["mode"]?.text
    isRunning = frame["running"]?.bool ?? false
    depth = Int(frame["depth"]?.int ?? 0)
  }

  private mutating func add(_ frame: AgentDocument) {
    reasons += frame["reasons"]?.list?.compactMap(Reason.init) ?? []
    description += frame["description"]?.text ?? ""
    for place in frame["places"]?.list ?? [] {
      let addresses = place.list?.compactMap(\.address) ?? []
      if let item = addresses.first { places[item] = Array(addresses.dropFirst()) }
    }
  }

  /// Sends a request and merges the frames of each loop, ordered by thread.
  ///
  /// - Parameter thread: Selects the loop of the thread with this name. Throws if there is none.
  static func read(
    _ request: String, _ target: TargetProcess, thread: String?
  ) throws(RecordError) -> [LoopAnswer] {
    try read(request, from: AgentConnection(target), target, thread: thread)
  }

  /// Sends a request to a connected agent and merges the frames.
  static func read(
    _ request: String, from agent: AgentConnection, _ target: TargetProcess, thread: String?
  ) throws(RecordError) -> [LoopAnswer] {
    let frames = try agent.ask(["request": .text(request)])
    var answers: [LoopAnswer] = []
    for frame in frames {
      guard let made = LoopAnswer(frame) else { continue }
      if answers.last?.thread != made.thread { answers.append(made) }
      answers[answers.count - 1].add(frame)
    }
    guard let thread else { return answers }
    let chosen = answers.filter { $0.name == thread }
    if chosen.isEmpty {
      throw RecordError("process \(target.number) has no run loop on a thread named \"\(thread)\"")
    }
    return chosen
  }
}
