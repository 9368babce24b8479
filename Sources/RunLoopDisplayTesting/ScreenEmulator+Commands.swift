// SPDX-License-Identifier: Apache-2.0

// The contents of operating system commands.
extension ScreenEmulator {
  /// Returns the URL of a link, which is empty where a link ends, or nil if the command is not a link.
  static func link(_ command: String) -> String? {
    let parts = command.split(separator: ";", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == "8", parts[2].isEmpty || parts[1].hasPrefix("id=") else { return nil }
    return String(parts[2])
  }

  /// Decodes a base64 text.
  static func decoded(_ digits: Substring) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var bytes: [UInt8] = []
    var (value, bits) = (0, 0)
    for digit in digits {
      guard let number = alphabet.firstIndex(of: digit) else { continue }
      value = (value << 6 | number) & 0xFFFF
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(value >> bits & 0xFF))
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
