// SPDX-License-Identifier: Apache-2.0

extension HeadlessTerminal {
  /// Faults of terminals and their connections, which let tests check how a program copes with them.
  public struct Faults: Hashable, Sendable {
    /// The version of Unicode after which characters are narrow, or `nil`, the default, if the terminal knows all
    /// widths.
    public var unicodeVersion: Int?
    /// The time that each byte, including replies, takes from the terminal to the program, zero by default.
    public var latency = Duration.zero
    /// The maximum number of bytes in one read, unlimited by default, where values below 1 count as 1.
    public var readLimit = Int.max
    /// Whether the ends of pastes and the releases of mouse buttons are lost, `false` by default.
    public var losesEnds = false
    /// The private modes that the terminal does not support, such as 1006 and 2004; none by default.
    public var ignoredModes: Set<Int> = []
    /// Whether a mark after the last column is added to the preceding character, as by tmux; `false` by default.
    public var marksMissLastColumn = false

    /// Creates a set without any faults.
    public init() {}
  }
}
