// SPDX-License-Identifier: Apache-2.0

extension HeadlessTerminal {
  /// What goes wrong on some terminals, and between them and a program: a test shows what becomes of the program there.
  public struct Faults: Hashable, Sendable {
    /// The version of Unicode whose widths the terminal knows, so that newer characters take one column; nil: all.
    public var unicodeVersion: Int?
    /// The time that every byte takes from the terminal to the program, answers included.
    public var latency = Duration.zero
    /// The most bytes that arrive in one read; less than one counts as one.
    public var readLimit = Int.max
    /// The ends of pastes, and releases of the mouse's buttons, are lost.
    public var losesEnds = false
    /// The private modes that the terminal does not know: 1006 and 2004, for example.
    public var ignoredModes: Set<Int> = []
    /// A mark that follows the character in the last column is added to the one before, as by tmux without wrapping.
    public var marksMissLastColumn = false

    /// Makes a set without faults.
    public init() {}
  }
}
