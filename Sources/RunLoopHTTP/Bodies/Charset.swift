// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

/// A charset, looked up by name in the system's iconv.
package struct Charset: Sendable, Hashable {
  /// The name that iconv knows the charset by.
  private let name: String

  /// Returns nil for a name that the system does not know.
  package init?(_ name: String) {
    // A suffix such as `//IGNORE` would change the treatment of invalid bytes.
    let isName = name.utf8.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || "-_.:+()".utf8.contains($0)
    }
    guard !name.isEmpty, isName else { return nil }
    self.name = Self.wider[name.lowercased()] ?? name
    guard let text = try? CText(self.name), text.withPointer({ clc_knows_charset($0) }) != 0 else { return nil }
  }

  /// Charset names that servers also use for a superset, which is decoded instead.
  private static let wider = [
    "gb2312": "GB18030", "gb_2312-80": "GB18030", "gbk": "GB18030", "x-gbk": "GB18030", "shift_jis": "CP932",
    "shift-jis": "CP932", "sjis": "CP932", "x-sjis": "CP932", "windows-31j": "CP932", "ks_c_5601-1987": "CP949",
    "euc-kr": "CP949", "x-mac-roman": "MACINTOSH",
  ]

  /// Decodes bytes to a string; nil if they are not valid in this charset.
  package func text(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard !bytes.isEmpty else { return "" }
    guard let name = try? CText(name) else { return nil }
    var length = 0
    let made = name.withPointer {
      clc_text($0, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, &length)
    }
    guard let made else { return nil }
    defer { free(made) }
    return String(validating: UnsafeRawBufferPointer(start: made, count: length), as: UTF8.self)
  }
}
