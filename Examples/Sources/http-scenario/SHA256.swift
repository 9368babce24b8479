// SPDX-License-Identifier: Apache-2.0

import CDigest

/// An incremental SHA-256 digest.
struct SHA256 {
  private var digest = cdigest()

  init() { cdigest_begin(&digest) }

  mutating func update(_ bytes: UnsafeRawBufferPointer) { cdigest_take(&digest, bytes.baseAddress, bytes.count) }

  /// Returns the digest in hexadecimal digits.
  func finished() -> String {
    withUnsafePointer(to: digest) { digest in
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: 65) { text in
        guard let start = text.baseAddress else { return "" }
        cdigest_text(digest, start)
        return String(cString: start)
      }
    }
  }
}
