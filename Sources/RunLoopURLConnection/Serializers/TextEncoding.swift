// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopHTTP

/// A text encoding, looked up by the name that a server uses for it.
struct TextEncoding: CustomStringConvertible {
  /// Foundation's encoding; nil if only iconv has the charset, or if the name is unknown.
  let encoding: String.Encoding?
  private let charset: Charset?
  private let other: String.Encoding
  let description: String

  /// - Parameters:
  ///   - name: The name; nil for none.
  ///   - other: The encoding to use for an unknown name.
  init(_ name: String?, orElse other: String.Encoding = .utf8) {
    let known = name.flatMap { Self.encodings[$0.lowercased()] }
    encoding = known ?? name.flatMap { Self.numbers[$0.lowercased()] }.map { String.Encoding(rawValue: $0) }
    charset = known == nil ? name.flatMap { Charset($0) } : nil
    self.other = other
    description = name ?? "\(other)"
  }

  /// Whether JSON in this encoding can be parsed without a conversion.
  var isUnicode: Bool {
    guard charset == nil else { return false }
    return [.utf8, .ascii, .utf16, .utf16BigEndian, .utf16LittleEndian, .utf32].contains(encoding ?? other)
  }

  func text(_ data: Data) -> String? {
    guard let charset else { return String(data: data, encoding: encoding ?? other) }
    return data.withUnsafeBytes { charset.text($0) }
  }

  /// The encodings that Foundation decodes by itself.
  private static let encodings: [String: String.Encoding] = [
    "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii, "iso-8859-1": .isoLatin1, "latin1": .isoLatin1,
    "windows-1252": .windowsCP1252, "utf-16": .utf16, "utf-16be": .utf16BigEndian, "utf-16le": .utf16LittleEndian,
    "utf-32": .utf32,
  ]

  /// Foundation's numbers for some encodings that iconv decodes.
  private static let numbers: [String: UInt] = [
    "iso-8859-2": 9, "windows-1250": 15, "windows-1251": 11, "windows-1253": 12, "windows-1254": 13, "euc-jp": 3,
    "iso-2022-jp": 21, "shift_jis": 8, "x-sjis": 8, "gb18030": 0x8000_0632, "gbk": 0x8000_0631,
    "gb2312": 0x8000_0930, "big5": 0x8000_0a03, "euc-kr": 0x8000_0940, "koi8-r": 0x8000_0a02,
    "iso-8859-15": 0x8000_020f,
  ]
}
