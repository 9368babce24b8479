// SPDX-License-Identifier: Apache-2.0

import CRunLoopToolKit
import RunLoopLibC
import Synchronization

/// Demangling of Swift names.
///
/// Can be used from any thread.
///
/// The results are cached, because some names are demangled in a child process.
enum SwiftNames {
  private struct Name: Hashable {
    let symbol: String
    let isQualified: Bool
  }

  private static let known = Mutex<[Name: String?]>([:])
  /// The maximum number of names in the cache before it is emptied.
  private static let mostKnown = 10_000

  /// Returns a symbol's readable name, optionally fully qualified, or nil if it is not a Swift symbol or too long.
  static func text(_ symbol: String, isQualified: Bool) -> String? {
    let name = Name(symbol: symbol, isQualified: isQualified)
    if let text = known.withLock({ $0[name] }) { return text }
    let bytes = crlt_demangle(symbol, isQualified ? 1 : 0)
    defer { free(bytes) }
    let text = bytes.map { String(cString: $0) }
    known.withLock {
      if $0.count >= mostKnown { $0.removeAll() }
      $0[name] = .some(text)
    }
    return text
  }
}
