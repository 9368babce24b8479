// SPDX-License-Identifier: Apache-2.0

/// An address in a process's code, with the data to symbolize it after the process has ended.
public struct CodeAddress: Sendable, Codable, Hashable {
  /// The address of the code in the process's memory.
  public let address: UInt64
  /// The path of the program or library, or nil if the address is in neither.
  public let image: String?
  /// The build ID of the program or library in hexadecimal, or nil if it has none.
  public let buildID: String?
  /// The address in the program's or library's file.
  public let offset: UInt64?

  /// Creates a code address.
  ///
  /// - Parameters:
  ///   - address: The address of the code in the process's memory.
  ///   - image: The path of the program or library. The default is `nil`.
  ///   - buildID: Its build ID in hexadecimal. The default is `nil`.
  ///   - offset: The address in its file. The default is `nil`.
  public init(address: UInt64, image: String? = nil, buildID: String? = nil, offset: UInt64? = nil) {
    self.address = address
    self.image = image
    self.buildID = buildID
    self.offset = offset
  }
}
