// SPDX-License-Identifier: Apache-2.0

/// What a terminal says about itself when it is asked.
package enum TerminalAnswer: Hashable, Sendable {
  /// What kind it is (DA1), which every terminal answers: answers to what was asked before have arrived.
  case attributes
  /// The state of a private mode (DECRPM): 0 unknown, 1 set, 2 reset, 3 and 4 set and reset permanently.
  case mode(Int, state: Int)
  /// The flags of the keyboard protocol.
  case keyboard(flags: Int)
  /// Where the cursor is.
  case cursor(Point)
  /// Its name and version (XTVERSION), as far as the parser keeps it.
  case version(String)
  /// Something that was not asked.
  case other
}

/// What a parser has found in the bytes of a terminal.
package enum ParsedInput: Hashable, Sendable {
  case event(InputEvent)
  case answer(TerminalAnswer)
}
