// SPDX-License-Identifier: Apache-2.0

/// The contents of `NAME.part.json`: a JSON object of strings and a number.
struct PartNote: Equatable {
  var url: String
  var validator: String
  var total: Int64
  /// The content codings of the file's data, as in `Content-Encoding`; empty for none.
  var codings = ""

  var text: String {
    "{\"url\": \(Self.quoted(url)), \"validator\": \(Self.quoted(validator)), \"total\": \(total)\(ofCodings)}\n"
  }

  private var ofCodings: String { codings.isEmpty ? "" : ", \"coding\": \(Self.quoted(codings))" }

  init(url: String, validator: String, total: Int64, codings: String = "") {
    (self.url, self.validator, self.total, self.codings) = (url, validator, total, codings)
  }

  init?(text: String) {
    var rest = text.unicodeScalars[...]
    func skip() { rest = rest.drop { $0 == " " || $0 == "\n" || $0 == "\r" || $0 == "\t" } }
    func take(_ scalar: Unicode.Scalar) -> Bool {
      skip()
      guard rest.first == scalar else { return false }
      rest = rest.dropFirst()
      return true
    }
    func string() -> String? {
      guard take("\"") else { return nil }
      var result = ""
      while let scalar = rest.popFirst() {
        if scalar == "\"" { return result }
        guard scalar == "\\" else {
          result.unicodeScalars.append(scalar)
          continue
        }
        guard let next = rest.popFirst() else { return nil }
        switch next {
        case "\"", "\\", "/": result.unicodeScalars.append(next)
        case "u":
          guard rest.count >= 4, let value = UInt32(String(rest.prefix(4)), radix: 16),
            let scalar = Unicode.Scalar(value)
          else { return nil }
          result.unicodeScalars.append(scalar)
          rest = rest.dropFirst(4)
        default: return nil
        }
      }
      return nil
    }
    var texts: [String: String] = [:]
    var number: Int64?
    guard take("{") else { return nil }
    repeat {
      guard let name = string(), take(":") else { return nil }
      skip()
      if rest.first == "\"" {
        guard let value = string() else { return nil }
        texts[name] = value
      } else {
        let digits = rest.prefix { ("0"..."9").contains($0) }
        guard name == "total", let value = Int64(String(digits)) else { return nil }
        number = value
        rest = rest.dropFirst(digits.count)
      }
    } while take(",")
    guard take("}"), let url = texts["url"], let validator = texts["validator"], let number else { return nil }
    self.init(url: url, validator: validator, total: number, codings: texts["coding"] ?? "")
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\u{0}"..."\u{1f}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
