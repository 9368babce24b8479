// SPDX-License-Identifier: Apache-2.0

/// The conversation with a terminal: how it is taken and given back, what it is asked, and what its answers change.
///
/// A value without isolation, the same for a real terminal and an emulated one.
package struct TerminalSession: Sendable {
  package var encoder: FrameEncoder
  private var parser: InputParser
  /// Whether the keys are to be sent by the keyboard protocol.
  private var hasKeyboard = false
  /// Whether clusters were switched on: once, whatever the terminal says how often.
  private var hasClusters = false
  /// Whether answers may still come.
  package private(set) var awaitsAnswers = false

  package init(size: Size, capabilities: TerminalCapabilities, pasteLimit: Int = 1 << 20) {
    encoder = FrameEncoder(size: size, capabilities: capabilities)
    parser = InputParser(pasteLimit: pasteLimit)
  }

  /// Whether a key may have come that is one only if nothing follows soon.
  package var awaitsMore: Bool { parser.awaitsMore }

  /// The time after which a lone escape is a key.
  package static let escapeDelay: Duration = .milliseconds(50)

  // MARK: Taking and giving back

  /// Appends what takes the terminal: its other screen, no cursor, no wrapping, mouse, pastes, focus.
  ///
  /// - Parameter asks: Whether it is asked what it can do, of which the last is answered by every terminal.
  package mutating func enter(asks: Bool, into output: inout ContiguousArray<UInt8>) {
    encoder.repaint()
    // What was cut off when the terminal was returned has no rest.
    parser = InputParser(pasteLimit: parser.pasteLimit)
    output.append(
      contentsOf: "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[?1002h\u{1B}[?1006h\u{1B}[?2004h\u{1B}[?1004h".utf8)
    if hasKeyboard { output.append(contentsOf: Self.keyboardOn.utf8) }
    if encoder.capabilities.knowsClusters { output.append(contentsOf: Self.clustersOn.utf8) }
    guard asks else { return }
    awaitsAnswers = true
    output.append(contentsOf: "\u{1B}[?2026$p\u{1B}[?2027$p\u{1B}[>q\u{1B}[?u\u{1B}[c".utf8)
  }

  /// Appends what gives the terminal back, whatever was sent before.
  package func leave(into output: inout ContiguousArray<UInt8>) {
    // What was cut off in the middle is ended.
    output.append(0x18)
    if encoder.capabilities.synchronizes { output.append(contentsOf: "\u{1B}[?2026l".utf8) }
    if encoder.capabilities.knowsClusters { output.append(contentsOf: "\u{1B}[?2027l".utf8) }
    if hasKeyboard { output.append(contentsOf: "\u{1B}[<u".utf8) }
    output.append(
      contentsOf:
        "\u{1B}[r\u{1B}[m\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?1006l\u{1B}[?1002l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l".utf8)
  }

  private static let keyboardOn = "\u{1B}[>1u"
  private static let clustersOn = "\u{1B}[?2027h"

  // MARK: Input

  /// Takes what came from the terminal.
  ///
  /// - Parameters:
  ///   - events: Gets what it means.
  ///   - output: Gets what the terminal is to be sent for its answers.
  package mutating func receive(
    _ bytes: UnsafeRawBufferPointer, events: inout [InputEvent], output: inout ContiguousArray<UInt8>
  ) {
    var parser = parser
    parser.parse(bytes) { take($0, &events, &output) }
    self.parser = parser
  }

  /// Nothing has followed what was a part of something: it is a key.
  package mutating func flush(events: inout [InputEvent], output: inout ContiguousArray<UInt8>) {
    var parser = parser
    parser.flush(awaitsAnswers: awaitsAnswers) { take($0, &events, &output) }
    self.parser = parser
  }

  private mutating func take(
    _ input: ParsedInput, _ events: inout [InputEvent], _ output: inout ContiguousArray<UInt8>
  ) {
    switch input {
    case .event(let event): events.append(event)
    case .answer(.mode(2026, let state)): encoder.capabilities.synchronizes = state == 1 || state == 2
    case .answer(.mode(2027, let state)):
      let grants = (1...3).contains(state)
      if grants, !hasClusters { output.append(contentsOf: Self.clustersOn.utf8) }
      hasClusters = hasClusters || grants
      encoder.capabilities.knowsClusters = grants
    case .answer(.keyboard):
      if !hasKeyboard { output.append(contentsOf: Self.keyboardOn.utf8) }
      hasKeyboard = true
    case .answer(.version(let text)): encoder.capabilities.note(version: text)
    case .answer(.attributes): awaitsAnswers = false
    case .answer: break
    }
  }
}
