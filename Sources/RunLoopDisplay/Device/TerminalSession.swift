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
  /// Whether the shape of the cursor was set.
  package private(set) var hasShape = false
  /// Whether the title of the terminal's window was set.
  private var hasTitle = false
  /// What is reported of the mouse.
  package private(set) var mouse = MouseTracking.buttons
  /// Kinds of clusters of which one that was measured is several characters.
  private var separated: CharacterWidth.Kinds = []
  /// How many questions after which every terminal answers have not been answered.
  package private(set) var awaitedAnswers = 0

  /// Whether the frames are shown below what is on the screen, and not on the terminal's other screen.
  let isInline: Bool
  /// What is measured, in the order of the answers to come.
  private var probes: ArraySlice<WidthProbe> = []

  package init(
    size: Size, capabilities: TerminalCapabilities, pasteLimit: Int = 1 << 20, isInline: Bool = false
  ) {
    self.isInline = isInline
    encoder = FrameEncoder(size: size, capabilities: capabilities)
    encoder.isInline = isInline
    // A scroll has margins, whose place on the screen is not known.
    if isInline { encoder.capabilities.scrolls = false }
    parser = InputParser(pasteLimit: pasteLimit)
  }

  /// What the input that is held back waits for; nil if there is none.
  package var wait: InputParser.Wait? { parser.wait }

  /// The time after which a lone escape is a key.
  package static let escapeDelay: Duration = .milliseconds(50)

  /// The longest time for which the beginning of a sequence keeps what follows it from being a key.
  package static let holdLimit: Duration = .milliseconds(500)

  // MARK: Taking and giving back

  /// Appends what takes the terminal: its other screen, no cursor, no wrapping, mouse, pastes, focus.
  ///
  /// - Parameter asks: Whether it is asked what it can do, of which the last is answered by every terminal.
  package mutating func enter(asks: Bool, into output: inout ContiguousArray<UInt8>) {
    encoder.repaint()
    encoder.cursorIsHidden()
    // What was cut off when the terminal was returned has no rest.
    parser = InputParser(pasteLimit: parser.pasteLimit)
    if isInline {
      // The place is saved with the terminal's own style.
      output.append(contentsOf: "\r\u{1B}[m\u{1B}7\u{1B}[?25l\u{1B}[?7l".utf8)
    } else {
      output.append(contentsOf: "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l".utf8)
      if let mode = Self.mode(of: mouse) { output.append(contentsOf: "\u{1B}[?\(mode)h".utf8) }
      output.append(contentsOf: "\u{1B}[?1006h".utf8)
    }
    output.append(contentsOf: "\u{1B}[?2004h\u{1B}[?1004h".utf8)
    awaitedAnswers = 0
    if hasKeyboard { setKeyboard(into: &output) }
    if encoder.capabilities.knowsClusters { output.append(contentsOf: Self.clustersOn.utf8) }
    guard asks else { return }
    awaitedAnswers += 1
    output.append(contentsOf: "\u{1B}[?2026$p\u{1B}[?2027$p\u{1B}[>q\u{1B}[?u".utf8)
    measure(into: &output)
    output.append(contentsOf: "\u{1B}[c".utf8)
  }

  /// Appends what makes the terminal send keys by the keyboard protocol, with their codes on a Latin keyboard.
  ///
  /// It is asked for what it has set: keys after that answer are sent in this way, and those before it are not.
  private mutating func setKeyboard(into output: inout ContiguousArray<UInt8>) {
    awaitedAnswers += 1
    output.append(contentsOf: "\u{1B}[>5u\u{1B}[?u\u{1B}[c".utf8)
  }

  /// The terminal has another size; appends what is needed before the next frame.
  ///
  /// The next frame is written in full. An inline session needs that even if its own size is the same, because the
  /// terminal may have moved the lines above it.
  package mutating func resize(to size: Size, into output: inout ContiguousArray<UInt8>) {
    if isInline { encoder.savePlace(into: &output) }
    encoder.resize(to: size)
  }

  /// Appends characters about which terminals do not agree, and asks where the cursor is behind each.
  ///
  /// They are written to the second row, as a place in the first can look like a key, and are erased at once.
  private mutating func measure(into output: inout ContiguousArray<UInt8>) {
    guard !isInline, encoder.rows > 1, probes.isEmpty else { return }
    probes = WidthProbe.all[...]
    for probe in probes { output.append(contentsOf: "\u{1B}[2H\(probe.text)\u{1B}[6n".utf8) }
    output.append(contentsOf: "\u{1B}[2H\u{1B}[K".utf8)
  }

  /// Whether answers about widths are waited for.
  package var isMeasuring: Bool { !probes.isEmpty }

  /// The time for answers about widths is over: what was not answered is not known, and later answers are ignored.
  package mutating func endMeasuring() { probes = [] }

  private mutating func note(column: Int) {
    guard let probe = probes.popFirst() else { return }
    switch probe.measured {
    case .version(let version):
      if column == 2, encoder.capabilities.unicodeVersion == version - 1 {
        encoder.capabilities.unicodeVersion = version
      }
    case .cluster(let kind):
      if column != 2 { separated.insert(kind) }
      // All of its kind were measured.
      guard !probes.contains(where: { $0.measured == probe.measured }), !separated.contains(kind) else { return }
      encoder.capabilities.joinedClusters.insert(kind)
    }
  }

  /// The place of the cursor after the next frame.
  package var cursor: TextCursor? {
    get { encoder.cursor }
    set {
      encoder.cursor = newValue
      if newValue?.shape != nil { hasShape = true }
    }
  }

  private static func mode(of mouse: MouseTracking) -> Int? {
    switch mouse {
    case .off: nil
    case .buttons: 1002
    case .movements: 1003
    }
  }

  /// Appends what makes the terminal, if it is taken, report another part of what the mouse does.
  package mutating func setMouse(_ mouse: MouseTracking, isOpen: Bool, into output: inout ContiguousArray<UInt8>) {
    guard mouse != self.mouse else { return }
    if isOpen, !isInline {
      if let mode = Self.mode(of: self.mouse) { output.append(contentsOf: "\u{1B}[?\(mode)l".utf8) }
      if let mode = Self.mode(of: mouse) { output.append(contentsOf: "\u{1B}[?\(mode)h".utf8) }
    }
    self.mouse = mouse
  }

  /// Appends what sets the title of the terminal's window, without its control characters.
  package mutating func setTitle(_ title: String, into output: inout ContiguousArray<UInt8>) {
    // The title that it has is kept by the terminal.
    if !hasTitle { output.append(contentsOf: "\u{1B}[22;2t".utf8) }
    hasTitle = true
    output.append(contentsOf: "\u{1B}]2;".utf8)
    let text = title.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }.prefix(256)
    output.append(contentsOf: String(String.UnicodeScalarView(text)).utf8)
    output.append(contentsOf: "\u{1B}\\".utf8)
  }

  /// Appends what puts a text on the clipboard.
  package static func copy(_ text: String, into output: inout ContiguousArray<UInt8>) {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    output.append(contentsOf: "\u{1B}]52;c;".utf8)
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let part = bytes[start..<min(start + 3, bytes.count)]
      let value = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
      for place in 0..<4 {
        output.append(place > part.count ? 0x3D : digits[value >> (18 - 6 * place) & 0x3F])
      }
    }
    output.append(contentsOf: "\u{1B}\\".utf8)
  }

  /// Appends what gives the terminal back, whatever was sent before.
  package func leave(into output: inout ContiguousArray<UInt8>) {
    // What was cut off in the middle is ended.
    output.append(0x18)
    if encoder.capabilities.synchronizes { output.append(contentsOf: "\u{1B}[?2026l".utf8) }
    if encoder.capabilities.knowsClusters { output.append(contentsOf: "\u{1B}[?2027l".utf8) }
    if encoder.capabilities.decorates { output.append(contentsOf: "\u{1B}]8;;\u{1B}\\".utf8) }
    if hasKeyboard { output.append(contentsOf: "\u{1B}[<u".utf8) }
    if hasTitle { output.append(contentsOf: "\u{1B}[23;2t".utf8) }
    if hasShape { output.append(contentsOf: "\u{1B}[0 q".utf8) }
    guard !isInline else {
      // Whether it wraps comes last: some terminals restore that with the place.
      output.append(contentsOf: "\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?25h\u{1B}8\u{1B}[?7h".utf8)
      // The last frame stays, and what follows begins below it.
      if encoder.rows > 1 { output.append(contentsOf: "\u{1B}[\(encoder.rows - 1)B".utf8) }
      return output.append(contentsOf: "\r\n".utf8)
    }
    if mouse == .movements { output.append(contentsOf: "\u{1B}[?1003l".utf8) }
    output.append(
      contentsOf:
        "\u{1B}[r\u{1B}[m\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?1006l\u{1B}[?1002l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l".utf8)
  }

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

  /// The time of ``wait`` is over: what was held back is reported.
  package mutating func flush(events: inout [InputEvent], output: inout ContiguousArray<UInt8>) {
    var parser = parser
    parser.flush(awaitsAnswers: awaitedAnswers > 0) { take($0, &events, &output) }
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
      if !hasKeyboard { setKeyboard(into: &output) }
      hasKeyboard = true
    case .answer(.version(let text)): encoder.capabilities.note(version: text)
    case .answer(.attributes):
      awaitedAnswers = max(0, awaitedAnswers - 1)
      endMeasuring()
    case .answer(.cursor(let place)): note(column: place.x)
    case .answer: break
    }
  }
}
