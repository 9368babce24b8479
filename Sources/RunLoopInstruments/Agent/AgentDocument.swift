// SPDX-License-Identifier: Apache-2.0

/// The JSON document in a frame of the agent's socket.
///
/// All input comes from another process and is validated.
package indirect enum AgentDocument: Sendable, Equatable {
  case null
  case bool(Bool)
  case int(Int64)
  case text(String)
  case list([AgentDocument])
  case object([String: AgentDocument])

  package subscript(_ name: String) -> AgentDocument? {
    if case .object(let members) = self { members[name] } else { nil }
  }

  package var text: String? { if case .text(let value) = self { value } else { nil } }
  package var int: Int64? { if case .int(let value) = self { value } else { nil } }
  package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  package var list: [AgentDocument]? { if case .list(let values) = self { values } else { nil } }

  /// An address, stored as a signed integer with the same bits.
  package static func address(_ value: UInt64) -> AgentDocument { .int(Int64(bitPattern: value)) }
  package var address: UInt64? { int.map { UInt64(bitPattern: $0) } }
}

// Writing.
extension AgentDocument {
  /// The document as a single line of JSON.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
  }

  private func write(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .bool(let value): bytes += (value ? "true" : "false").utf8
    case .int(let value): bytes += String(value).utf8
    case .text(let value): AgentDocument.quote(value, to: &bytes)
    case .list(let values):
      bytes.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        AgentDocument.quote(member.key, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private static func quote(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0..<32:
        let digits = String(byte, radix: 16)
        bytes += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
