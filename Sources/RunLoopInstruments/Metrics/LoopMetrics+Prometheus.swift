// SPDX-License-Identifier: Apache-2.0

extension LoopMetrics {
  /// The numbers in the text format of Prometheus, each family with its description.
  ///
  /// To serve several loops, see ``prometheus(_:)``: a family may stand in an answer once.
  public var prometheus: String { LoopMetrics.prometheus([self]) }

  /// The numbers of several loops in the text format of Prometheus.
  ///
  /// Times are in seconds. Quantiles are of the call-outs that are recorded, of which the format allows a summary to say
  /// as much.
  public static func prometheus(_ loops: [LoopMetrics]) -> String {
    var text = ""
    func family(_ name: String, _ kind: String, _ help: String, _ lines: (LoopMetrics) -> [(String, String)]) {
      text += "# HELP runloop_\(name) \(help)\n# TYPE runloop_\(name) \(kind)\n"
      for loop in loops {
        for (suffix, value) in lines(loop) {
          let (part, more) = suffix.hasPrefix("_") ? (suffix, "") : ("", suffix)
          text += "runloop_\(name)\(part){\(loop.labels)\(more)} \(value)\n"
        }
      }
    }
    func number(_ name: String, _ kind: String, _ help: String, _ value: @escaping (LoopMetrics) -> Int) {
      family(name, kind, help) { [("", "\(value($0))")] }
    }
    number("waits_total", "counter", "Times that the loop has slept or looked for something to do.") { $0.waits }
    number("posts_total", "counter", "Blocks, jobs and hand-offs that it was given.") { $0.posted }
    number("queue", "gauge", "Blocks, jobs and hand-offs that wait.") { $0.waitingBlocks }
    number("items", "gauge", "Items that keep the mode alive that it runs in.") { $0.items }
    number("dropped_blocks_total", "counter", "Blocks that were dropped as its thread ended.") { $0.droppedBlocks }
    number("refusals_total", "counter", "Items and blocks that it has rejected.") { $0.refusals }
    number("saved_wakeups_total", "counter", "Wake-ups that the tolerances of timers have saved.") { $0.savedWakeUps }
    family("busy_ratio", "gauge", "Part of the recorded time in which it did not sleep.") { loop in
      loop.busy.map { [("", "\($0)")] } ?? []
    }
    family("call_out_seconds", "summary", "How long the recorded call-outs took.") { $0.callOuts.summary }
    family("delay_seconds", "summary", "How long recorded blocks have waited to be called.") { $0.delays.summary }
    return text
  }

  /// What tells the loop from others.
  private var labels: String {
    var escaped = ""
    for character in label {
      switch character {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.append(character)
      }
    }
    return "loop=\"\(escaped)\",tid=\"\(thread)\""
  }
}

extension Histogram {
  /// The lines of a summary: the end of the name or the labels, and the value.
  fileprivate var summary: [(String, String)] {
    guard count > 0 else { return [] }
    func seconds(_ nanoseconds: Int64) -> String { "\(Double(nanoseconds) / 1e9)" }
    let quantiles = [0.5, 0.9, 0.99].map { (",quantile=\"\($0)\"", seconds(quantile($0) ?? 0)) }
    return quantiles + [("_sum", seconds(sum)), ("_count", "\(count)")]
  }
}
