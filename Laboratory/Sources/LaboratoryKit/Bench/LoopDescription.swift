// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a loop's description says, taken apart again.
///
/// The items' addresses and descriptors are replaced by names, so that two descriptions of the same things are equal.
struct LoopDescription: Sendable {
  /// The lines of the description.
  let lines: [String]

  /// Describes a loop, with names for objects.
  init(of loop: RunLoop, names: [(object: AnyObject, name: String)]) {
    var text = loop.debugDescription
    for (object, name) in names {
      text.replace(" \(address(of: object))>", with: " \(name)>")
      if let source = object as? RunLoop.DescriptorSource {
        text.replace("descriptor = \(source.descriptor),", with: "descriptor = \(name),")
      }
    }
    // Neither the thread nor where the code lies is the same the next time.
    text.replace(#/thread = .* \([0-9]+\),/#, with: "thread = its own,")
    text.replace(#/callout = 0x[0-9a-f]+ \(\S+ \+ 0x[0-9a-f]+\)[^}]*/#, with: "callout = its own")
    lines = text.split(separator: "\n").map { String($0.replacing("\t", with: "  ")) }
  }

  /// The wake-up port, whether the loop is stopped, and the current mode, with one space between.
  var state: String {
    ["wakeup port", "stopped", "current mode"].map { value(of: $0) ?? "missing" }.joined(separator: " ")
  }

  /// How many members a set has and which they are, or what stands in the place of a set.
  ///
  /// - Parameters:
  ///   - title: What the set is called in the description.
  ///   - mode: The mode whose set it is; nil: it is the loop's.
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

  /// How many members a mode's set has.
  func count(_ title: String, of mode: RunLoop.Mode) -> Int { Int(set(title, of: mode).prefix(while: \.isNumber)) ?? 0 }

  /// The sources, observers and timers of a mode.
  func items(of mode: RunLoop.Mode) -> String {
    ["sources0", "sources1", "observers", "timers"].map { "\($0) \(set($0, of: mode))" }.joined(separator: ", ")
  }

  /// What follows a name and an equals sign, up to the next comma.
  private func value(of name: String) -> String? {
    for line in lines {
      guard let range = line.firstRange(of: "\(name) = ") else { continue }
      return String(line[range.upperBound...].prefix { $0 != "," })
    }
    return nil
  }

  /// The name in a line of a set: `0 : <Timer name>{…}` or `0 : "name"`.
  private func member(_ line: String) -> String {
    let entry = trimmed(line).drop { $0 != ":" }.dropFirst(2)
    guard entry.hasPrefix("<") else { return entry.filter { $0 != "\"" } }
    return String(entry.drop { $0 != " " }.dropFirst().prefix { $0 != ">" })
  }

  private func trimmed(_ line: String) -> Substring { line.drop { $0 == " " } }
}

/// An object's address as descriptions have it.
private func address(of object: AnyObject) -> String {
  "0x" + String(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()), radix: 16)
}
