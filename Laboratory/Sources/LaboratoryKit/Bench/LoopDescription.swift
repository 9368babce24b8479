// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A parsed debug description of a loop.
///
/// Names replace the items' addresses and descriptors, so that descriptions of equal contents are equal.
struct LoopDescription: Sendable {
  /// The lines of the description.
  let lines: [String]

  /// Describes a loop, using names for objects.
  init(of loop: RunLoop, names: [(object: AnyObject, name: String)]) {
    var text = loop.debugDescription
    for (object, name) in names {
      text.replace(" \(address(of: object))>", with: " \(name)>")
      if let source = object as? RunLoop.DescriptorSource {
        text.replace("descriptor = \(source.descriptor),", with: "descriptor = \(name),")
      }
    }
    // The thread and the code's addresses differ between runs.
    text.replace(#/thread = .* \([0-9]+\),/#, with: "thread = its own,")
    text.replace(#/callout = 0x[0-9a-f]+ \(\S+ \+ 0x[0-9a-f]+\)[^}]*/#, with: "callout = its own")
    lines = text.split(separator: "\n").map { String($0.replacing("\t", with: "  ")) }
  }

  /// The wake-up port, whether the loop is stopped, and the current mode, separated by spaces.
  var state: String {
    ["wakeup port", "stopped", "current mode"].map { value(of: $0) ?? "missing" }.joined(separator: " ")
  }

  /// Returns the number of a set's members and their names, or the text in place of a set.
  ///
  /// - Parameters:
  ///   - title: The name of the set in the description.
  ///   - mode: The mode of the set, or nil for a set of the loop.
  func set(_ title: String, of mode: RunLoop.Mode? = nil) -> String {
    let start = mode.map { mode in lines.firstIndex { $0.contains("{name = \(mode)") } } ?? lines.startIndex
    guard let start, let heading = lines[start...].firstIndex(where: { trimmed($0).hasPrefix("\(title) = ") }) else {
      return "missing"
    }
    let rest = trimmed(lines[heading]).dropFirst("\(title) = ".count)
    guard rest.hasPrefix("{count = ") else { return String(rest.prefix { $0 != "," }) }
    let count = rest.dropFirst("{count = ".count).prefix(while: \.isNumber)
    let members = lines[lines.index(after: heading)...].prefix { !$0.hasPrefix("}") }.map(member)
    return "\(count) (\(members.joined(separator: ", ")))"
  }

  /// Returns the number of members of a mode's set.
  func count(_ title: String, of mode: RunLoop.Mode) -> Int { Int(set(title, of: mode).prefix(while: \.isNumber)) ?? 0 }

  /// The sources, observers and timers of a mode.
  func items(of mode: RunLoop.Mode) -> String {
    ["sources0", "sources1", "observers", "timers"].map { "\($0) \(set($0, of: mode))" }.joined(separator: ", ")
  }

  /// Returns the text after a name and an equals sign, up to the next comma.
  private func value(of name: String) -> String? {
    for line in lines {
      guard let range = line.firstRange(of: "\(name) = ") else { continue }
      return String(line[range.upperBound...].prefix { $0 != "," })
    }
    return nil
  }

  /// Returns the name in a line of a set: `0 : <Timer name>{…}` or `0 : "name"`.
  private func member(_ line: String) -> String {
    let entry = trimmed(line).drop { $0 != ":" }.dropFirst(2)
    guard entry.hasPrefix("<") else { return entry.filter { $0 != "\"" } }
    return String(entry.drop { $0 != " " }.dropFirst().prefix { $0 != ">" })
  }

  private func trimmed(_ line: String) -> Substring { line.drop { $0 == " " } }
}

/// Returns an object's address as descriptions format it.
private func address(of object: AnyObject) -> String {
  "0x" + String(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()), radix: 16)
}
