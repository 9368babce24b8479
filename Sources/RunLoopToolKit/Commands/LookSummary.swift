// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopInstruments

/// The outcome of an observation: how it ended, and what it missed.
struct LookSummary {
  /// The reason why an observation ended.
  enum Ending: String {
    /// The requested time has passed.
    case time
    case interrupted
    /// The process has ended.
    case ended
    /// The process has executed another program.
    case executed
  }

  let begin: Int64
  var end: Int64
  var ending = Ending.time
  /// The maximum number of loops observed at once.
  private(set) var loops = 0
  /// The maximum number of loops without a face.
  private(set) var unseen = 0
  /// The maximum number of loops while the process was stopped or being debugged.
  private(set) var stopped = 0
  /// When to check again whether the process is stopped, for which files are read.
  private var nextStopCheck: Int64 = 0
  var unread: [UnreadDescriptor] = []
  /// The timers that fired late on loops that did not hang.
  var late: [LateReport] = []

  /// For each thread whose loop is served by one that does not report its own items, a sentence about that.
  private var silentHosts: [Int32: String] = [:]

  init(at time: Int64) { (begin, end) = (time, time) }

  mutating func note(_ scout: HangScout, unseen: Int) {
    loops = max(loops, scout.seenLoops)
    self.unseen = max(self.unseen, unseen)
    if end >= nextStopCheck {
      if scout.isStopped { stopped = max(stopped, scout.seenLoops) }
      nextStopCheck = end + 100_000_000
    }
    for (thread, host) in scout.silentHosts where silentHosts[thread] == nil {
      let name = host == CRL_HOST_LIBUV ? "libuv" : "the program's own loop"
      silentHosts[thread] = "What \(name) runs on \(scout.name(ofThread: thread)), besides the loop, cannot be seen."
    }
    for found in scout.unread where !unread.contains(where: { $0.found == found }) {
      unread.append(UnreadDescriptor(found: found))
    }
  }

  /// The lines to print in addition to the hangs.
  ///
  /// - Parameter isAll: Whether all loops were observed.
  func lines(_ process: Int32, found: Int, isAll: Bool) -> [String] {
    var lines = unread.map(\.text) + late.map(\.text)
    let span = Text.duration(max(0, end - begin))
    let none = found == 0 ? "; until then no loop had hung" : ""
    switch ending {
    case .ended: lines.append("Process \(process) has ended, \(span) after the look began\(none).")
    case .executed:
      lines.append("Process \(process) has become another program, \(span) after the look began\(none).")
    case .interrupted where hasTrouble, .time where hasTrouble: break
    case .interrupted where found == 0: lines.append("No loop of process \(process) hung in \(span).")
    case .time where found == 0 && hasSeenAll: lines.append("No loop of process \(process) hung.")
    case .time where found == 0: lines.append("No loop of process \(process) hung that could be seen.")
    case .interrupted, .time: break
    }
    if loops == 0 { lines.append("It had no loop to look at\(isAll ? "" : " on a thread of that name").") }
    if unseen > 0 {
      lines.append("\(unseen) loops could not be looked at: the process has more than \(CRL_FACES).")
    }
    if stopped > 0 { lines.append("\(stoppedText), which does not count as a hang.") }
    lines += hidden
    return lines
  }

  /// The parts of observed loops that could not be seen, a sentence for each.
  var hidden: [String] { silentHosts.sorted { $0.key < $1.key }.map(\.value) }

  /// Describes the loops whose threads were stopped.
  var stoppedText: String {
    "\(stopped) of \(loops) loops \(stopped == 1 ? "was" : "were") stopped by a signal or a debugger"
  }

  private var hasSeenAll: Bool { unseen == 0 && stopped == 0 && silentHosts.isEmpty }

  /// Whether there is trouble that is not a hang.
  private var hasTrouble: Bool { !unread.isEmpty || !late.isEmpty }

  /// The exit status for `--exit-code`.
  func status(found: Int) -> CommandStatus {
    if found > 0 || hasTrouble { return .found }
    return ending == .time && hasSeenAll && loops > 0 ? .success : .unseen
  }

  var json: JSON {
    .object([
      ("begin", .int(Int(begin))), ("end", .int(Int(end))), ("ending", .text(ending.rawValue)), ("loops", .int(loops)),
      ("unseen", .int(unseen)), ("stopped", .int(stopped)), ("unread", .list(unread.map(\.json))),
      ("late", .list(late.map(\.json))),
      ("silentHosts", .list(silentHosts.keys.sorted().map { .int(Int($0)) })),
      ("beginTime", .text(WallTime.json(begin))),
      ("endTime", .text(WallTime.json(end))),
    ])
  }
}

/// A descriptor that is always ready because its handler does not read it, so that its loop never sleeps.
struct UnreadDescriptor {
  let found: HangScout.Unread
  var thread = ""
  var code: CodePlace?
  /// A description of the descriptor's file.
  var detail = ""

  var text: String {
    let handler = code.map { " of \($0.text)" } ?? ""
    return "\(thread) (\(found.thread)) never sleeps: descriptor \(detail) was ready in more than 1,000 waits "
      + "in a row, and the handler\(handler) reads nothing"
  }

  var json: JSON {
    .object([
      ("tid", .int(Int(found.thread))), ("thread", .text(thread)), ("descriptor", .int(Int(found.descriptor))),
      ("code", CodePlace.json(code)),
    ])
  }
}

/// A timer or descriptor that was served late because its loop was too busy.
struct LateReport {
  let found: Lateness.Item
  let thread: String
  let code: CodePlace?

  var text: String { "\(thread) (\(found.thread)): \(words)" }

  /// Describes the late item and its delay.
  var words: String {
    let (name, time) = (code?.text ?? "?", Text.duration(found.late))
    return found.isDescriptor
      ? "descriptor of \(name) ready for up to \(time) before it was served" : "timer \(name) fired late by \(time)"
  }

  var json: JSON {
    .object([
      ("tid", .int(Int(found.thread))), ("thread", .text(thread)), ("code", CodePlace.json(code)),
      ("late", .int(Int(found.late))), ("kind", .text(found.isDescriptor ? "descriptor" : "timer")),
    ])
  }

  /// The late timers and descriptors of loops that did not hang: lateness during a hang is not a separate problem.
  static func named(
    _ scout: HangScout, besides hung: some Sequence<Int32>, _ target: TargetProcess
  ) -> [LateReport] {
    let hung = Set(hung)
    let late = scout.late.filter { !hung.contains($0.thread) }
    guard !late.isEmpty else { return [] }
    let symbolizer = Symbolizer(target.loadedImages, source: ExternalSymbolizer(of: target.user))
    return late.map {
      LateReport(found: $0, thread: scout.name(ofThread: $0.thread), code: symbolizer.place(.function, $0.code))
    }
  }
}

/// Symbolization of such descriptors.
enum UnreadDescriptors {
  static func named(
    _ unread: [UnreadDescriptor], _ scout: HangScout, _ target: TargetProcess
  ) -> [UnreadDescriptor] {
    guard !unread.isEmpty else { return [] }
    let symbolizer = Symbolizer(target.loadedImages, source: ExternalSymbolizer(of: target.user))
    return unread.map { descriptor in
      var named = descriptor
      named.thread = scout.name(ofThread: descriptor.found.thread)
      named.code = symbolizer.place(.function, descriptor.found.code)
      named.detail = ThreadWait.descriptor(descriptor.found.descriptor, of: target.number)
      return named
    }
  }
}
