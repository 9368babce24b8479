// SPDX-License-Identifier: Apache-2.0

import CRunLoopTools
import RunLoopLibC
import Synchronization

/// The names that mangled names of Swift stand for.
///
/// Some are read by a child process, so the texts are cached. Any thread.
enum SwiftNames {
  private struct Name: Hashable {
    let symbol: String
    let isQualified: Bool
  }

  private static let known = Mutex<[Name: String?]>([:])
  /// How many names are cached before the cache is emptied.
  private static let mostKnown = 10_000

  /// A symbol as people read it, with all modules if it is qualified; nil if it is none of Swift's, or too long.
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
