// SPDX-License-Identifier: Apache-2.0

/// A program and its logs as a test, to be pasted among the scripted ones.
struct ScriptedTest {
  var title: String
  var program: Program
  var logs: Comparison.Logs

  /// The test's source, indented as a member of a suite.
  var source: String {
    """
      @Test("\(title)")
      func \(functionName)() {
        let program = \(program.source(indentation: 4, used: 18))
        expectLogs(
          of: program,
          coreFoundation: \(Self.literal(logs.coreFoundation)),
          ours: \(Self.literal(logs.ours)))
      }
    """
  }

  private var functionName: String {
    let words = title.split { !$0.isASCII || !($0.isLetter || $0.isNumber) }
    let name = words.enumerated().map { $0.offset == 0 ? $0.element.lowercased() : $0.element.uppercasedFirst }.joined()
    return name.first?.isNumber ?? true ? "program" + name : name
  }

  /// The log as a literal of one line or of several.
  private static func literal(_ log: Log) -> String {
    let text = log.description
    guard text.count > 90 else { return "\"\(text)\"" }
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + word.count < 105 {
        lines[lines.count - 1] = last + " " + word
      } else {
        lines.append(String(word))
      }
    }
    let margin = String(repeating: " ", count: 8)
    return "\"\"\"\n" + margin + lines.joined(separator: " \\\n" + margin) + "\n" + margin + "\"\"\""
  }
}

extension Substring {
  fileprivate var uppercasedFirst: String { prefix(1).uppercased() + dropFirst() }
}
