// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A name and a value of a form.
///
/// Nested parameters are written as in AFNetworking: `key[name]` for dictionaries, in the order of the names, and
/// `key[]` for arrays and sets. Numbers are written like the description of an `NSNumber`: both `true` and 1.0 become
/// 1.
struct QueryPair: Equatable {
  var name: String
  var value: String
  /// The bytes that are the value in a multipart form; nil for the text.
  var data: Data?

  static func pairs(of parameters: Any?) -> [QueryPair] { pairs(nil, parameters ?? [String: Any]()) }

  private static func pairs(_ key: String?, _ value: Any) -> [QueryPair] {
    switch value {
    case let dictionary as [AnyHashable: Any]:
      dictionary.map { ("\($0.key)", $0.value) }.sorted { $0.0 < $1.0 }.flatMap { name, value in
        pairs(key.map { "\($0)[\(name)]" } ?? name, value)
      }
    case let array as [Any]: array.flatMap { pairs("\(key ?? "")[]", $0) }
    case let set as Set<AnyHashable>:
      set.map { text($0.base) }.sorted().flatMap { pairs(key ?? "", $0) }
    case let value where Mirror(reflecting: value).displayStyle == .optional:
      pairs(key, Mirror(reflecting: value).children.first?.value ?? NSNull())
    case is NSNull: [QueryPair(name: key ?? "", value: "")]
    default: [QueryPair(name: key ?? "", value: text(value), data: value as? Data)]
    }
  }

  private static func text(_ value: Any) -> String {
    switch value {
    case let flag as Bool: flag ? "1" : "0"
    case let number as Int64: "\(number)"
    case let number as UInt64: "\(number)"
    case let number as Double: String(format: "%.16g", number)
    case let number as Float: String(format: "%.7g", number)
    case let data as Data: String(decoding: data, as: UTF8.self)
    default: "\(value)"
    }
  }

  /// Returns parameters in the form in which they are written to a URL or a body.
  static func text(of parameters: Any) -> String {
    pairs(of: parameters).map { "\(escaped($0.name))=\(escaped($0.value))" }.joined(separator: "&")
  }

  /// The characters that need no escaping in a query (RFC 3986), except those that separate pairs.
  private static let plain: CharacterSet = {
    var set = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?")
    set.remove(charactersIn: ":#[]@!$&'()*+,;=")
    return set
  }()

  static func escaped(_ text: String) -> String { text.addingPercentEncoding(withAllowedCharacters: plain) ?? "" }
}
