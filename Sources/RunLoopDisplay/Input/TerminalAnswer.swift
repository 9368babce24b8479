// SPDX-License-Identifier: Apache-2.0

/// A terminal's reply to a query.
package enum TerminalAnswer: Hashable, Sendable {
  /// The device attributes (DA1), to which every terminal replies after all earlier queries.
  case attributes
  /// The state of a private mode (DECRPM): 0 unknown, 1 set, 2 reset, 3 and 4 set and reset permanently.
  case mode(Int, state: Int)
  /// The flags of the keyboard protocol.
  case keyboard(flags: Int)
  /// The position of the cursor.
  case cursor(Point)
  /// The name and version (XTVERSION), as far as the parser stores them.
  case version(String)
  /// A reply to something that was not queried.
  case other
}

/// The input that a parser has found in the bytes of a terminal.
package enum ParsedInput: Hashable, Sendable {
  case event(InputEvent)
  case answer(TerminalAnswer)
}
