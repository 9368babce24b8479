// SPDX-License-Identifier: Apache-2.0

/// The stacks of hangs in Perfetto's format, in which each text, frame and stack has a number.
struct PerfettoStacks {
  private struct Frame: Hashable {
    let function: UInt64
    let file: UInt64
    let line: Int
  }

  private var functions: [String: UInt64] = [:]
  private var files: [String: UInt64] = [:]
  private var frames: [Frame: UInt64] = [:]
  private var stacks: [[UInt64]: UInt64] = [:]
  /// The numbers of the call-outs' stacks.
  private(set) var byPlace: [Timeline.Place: UInt64] = [:]
  /// The hangs without a recorded call-out, with the numbers of their stacks.
  private(set) var others: [(hang: Timeline.Hang, stack: UInt64)] = []

  init(_ timeline: Timeline) {
    for hang in timeline.hangs where !hang.stack.isEmpty {
      let stack = number(of: hang.stack)
      if let place = timeline.place(of: hang) { byPlace[place] = stack } else { others.append((hang, stack)) }
    }
  }

  var isEmpty: Bool { stacks.isEmpty }

  private mutating func number(of stack: [TimelineName]) -> UInt64 {
    // Perfetto expects the outermost frame first.
    let ids = stack.reversed().map { name in
      Self.number(
        Frame(
          function: Self.number(name.function, &functions), file: name.file.map { Self.number($0, &files) } ?? 0,
          line: name.line ?? 0), &frames)
    }
    return Self.number(ids, &stacks)
  }

  private static func number<Value: Hashable>(_ value: Value, _ known: inout [Value: UInt64]) -> UInt64 {
    let number = known[value] ?? UInt64(known.count + 1)
    known[value] = number
    return number
  }

  /// Writes the numbered values as the interned data of a packet.
  ///
  /// - Parameter program: The name of the program that contains the functions.
  func write(_ data: inout ProtobufWriter, program: String) {
    func text(_ field: Int, _ number: UInt64, _ text: String) {
      data.message(field) {
        $0.number(1, number)
        $0.text(2, text)
      }
    }
    for (name, number) in Self.ordered(functions) { text(5, number, name) }
    for (path, number) in Self.ordered(files) { text(18, number, path) }
    text(17, 1, program)
    data.message(19) {
      $0.number(1, UInt64(1))
      $0.number(7, UInt64(1))
    }
    for (frame, number) in Self.ordered(frames) {
      data.message(6) {
        $0.number(1, number)
        $0.number(2, frame.function)
        $0.number(3, UInt64(1))
        if frame.file != 0 { $0.number(5, frame.file) }
        if frame.line > 0 { $0.number(6, UInt64(frame.line)) }
      }
    }
    for (stack, number) in Self.ordered(stacks) {
      data.message(7) {
        $0.number(1, number)
        for frame in stack { $0.number(2, frame) }
      }
    }
  }

  private static func ordered<Value>(_ known: [Value: UInt64]) -> [(key: Value, value: UInt64)] {
    known.sorted { $0.value < $1.value }
  }
}
