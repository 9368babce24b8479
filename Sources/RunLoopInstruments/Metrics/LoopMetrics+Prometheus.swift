// SPDX-License-Identifier: Apache-2.0

extension LoopMetrics {
  /// The metrics in Prometheus text format, each family with its description.
  ///
  /// For several loops, use ``prometheus(_:)``, because a family may appear only once in a response.
  public var prometheus: String { LoopMetrics.prometheus([self]) }

  /// Returns the metrics of several loops in Prometheus text format.
  ///
  /// Times are in seconds. Call-outs, delays and lateness are histograms, whose buckets and sums never decrease. A
  /// loop is identified only by its name, so its series continue if it moves to another thread. If several loops have
  /// the same name, the label `tid` with the thread ID distinguishes them.
  public static func prometheus(_ loops: [LoopMetrics]) -> String {
    var text = ""
    let labels = labels(of: loops)
    func family(_ name: String, _ kind: String, _ help: String, _ samples: (LoopMetrics) -> [Sample]) {
      text += "# HELP runloop_\(name) \(help)\n# TYPE runloop_\(name) \(kind)\n"
      for (loop, labels) in zip(loops, labels) {
        for sample in samples(loop) {
          text += "runloop_\(name)\(sample.suffix){\(labels)\(sample.labels)} \(sample.value)\n"
        }
      }
    }
    func number(_ name: String, _ kind: String, _ help: String, _ value: @escaping (LoopMetrics) -> Int) {
      family(name, kind, help) { [Sample(value: "\(value($0))")] }
    }
    number("waits_total", "counter", "Times that the loop has slept or looked for something to do.") { $0.waits }
    number("posts_total", "counter", "Blocks, jobs and hand-offs that it was given.") { $0.posted }
    number("queue", "gauge", "Blocks, jobs and hand-offs that wait.") { $0.waitingBlocks }
    number("items", "gauge", "Items that keep the mode alive that it runs in.") { $0.items }
    number("dropped_blocks_total", "counter", "Blocks that were dropped as its thread ended.") { $0.droppedBlocks }
    number("refusals_total", "counter", "Items and blocks that it has rejected.") { $0.refusals }
    number("saved_wakeups_total", "counter", "Wake-ups that the tolerances of timers have saved.") { $0.savedWakeUps }
    family("busy_ratio", "gauge", "Part of the time of the last records in which it did not sleep.") { loop in
      loop.busy.map { [Sample(value: "\($0)")] } ?? []
    }
    number("hangs_total", "counter", "Call-outs, or parts of them, of 250 ms or longer, when over.") { $0.hangs }
    family("busy_seconds_total", "counter", "Time in which it ran and did not sleep, while it was watched.") {
      [Sample(value: "\(Double($0.busyTime) / 1e9)")]
    }
    family("open_call_out_seconds", "gauge", "How long the call-out that is open has lasted; 0 without one.") {
      [Sample(value: "\(Double($0.openCallOut ?? 0) / 1e9)")]
    }
    family("call_out_seconds", "histogram", "How long call-outs took, while it was watched.") { $0.callOuts.samples }
    family("timer_lateness_seconds", "histogram", "By how much timers fired late, while it was watched.") {
      $0.lateness.samples
    }
    family("delay_seconds", "histogram", "How long recorded blocks have waited to be called.") { $0.delays.samples }
    return text
  }

  /// The labels that identify each loop.
  private static func labels(of loops: [LoopMetrics]) -> [String] {
    let counts = Dictionary(loops.map { ($0.label, 1) }, uniquingKeysWith: +)
    return loops.map { $0.nameLabel + (counts[$0.label, default: 0] > 1 ? ",tid=\"\($0.thread)\"" : "") }
  }

  private var nameLabel: String {
    var escaped = ""
    for character in label {
      switch character {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.append(character)
      }
    }
    return "loop=\"\(escaped)\""
  }
}

/// A line of the format: a suffix for the family's name, additional labels, and the value.
private struct Sample {
  var suffix = ""
  var labels = ""
  var value: String
}

extension Histogram {
  /// The last bucket that is reported separately, which ends at about 17 seconds.
  private static let lastStep = 24

  /// The samples of a histogram: the cumulative buckets, the sum and the count.
  ///
  /// The buckets are the same every time, so that values from different times can be compared.
  fileprivate var samples: [Sample] {
    guard count > 0 else { return [] }
    var seen = 0
    var samples: [Sample] = []
    for step in 0...Histogram.lastStep {
      if step < counts.count { seen += counts[step] }
      // The upper bound is exclusive, and durations are whole nanoseconds.
      let longest = Double(Histogram.end(ofStep: step) - 1) / 1e9
      samples.append(Sample(suffix: "_bucket", labels: ",le=\"\(longest)\"", value: "\(seen)"))
    }
    return samples + [
      Sample(suffix: "_bucket", labels: ",le=\"+Inf\"", value: "\(count)"),
      Sample(suffix: "_sum", value: "\(Double(sum) / 1e9)"), Sample(suffix: "_count", value: "\(count)"),
    ]
  }
}
