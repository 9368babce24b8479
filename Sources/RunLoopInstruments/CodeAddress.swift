// SPDX-License-Identifier: Apache-2.0

/// An address in a process's code, and what a symbolizer needs to name it after the process has ended.
public struct CodeAddress: Sendable, Codable, Hashable {
  /// The address of the code in the process's memory.
  public let address: UInt64
  /// The path of the program or library; nil if the address is in none.
  public let image: String?
  /// The program's or library's build id, in hexadecimal digits; nil if it has none.
  public let buildID: String?
  /// The address in the program's or library's file.
  public let offset: UInt64?

  /// - Parameters:
  ///   - address: The address of the code in the process's memory.
  ///   - image: The path of the program or library.
  ///   - buildID: Its build id, in hexadecimal digits.
  ///   - offset: The address in its file.
  public init(address: UInt64, image: String? = nil, buildID: String? = nil, offset: UInt64? = nil) {
    self.address = address
    self.image = image
    self.buildID = buildID
    self.offset = offset
  }
}
