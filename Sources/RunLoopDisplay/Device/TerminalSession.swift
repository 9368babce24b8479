// SPDX-License-Identifier: Apache-2.0

/// The protocol with a terminal: how it is opened and restored, its queries, and the effects of its replies.
///
/// This value is not isolated, and is used for both real and emulated terminals.
package struct TerminalSession: Sendable {
  package var encoder: FrameEncoder
  private var parser: InputParser
  /// Whether keys are sent by the keyboard protocol.
  private var hasKeyboard = false
  /// Whether clusters have been enabled, which is done only once, however often the terminal reports them.
  private var hasClusters = false
  package private(set) var hasShape = false
  /// The title that the terminal window was given, in place of the one that the terminal has saved.
  private var title: String?
  /// The mouse events that are reported.
  package private(set) var mouse = MouseTracking.buttons
  /// The kinds of clusters of which a measured one is not a single character.
  private var separated: CharacterWidth.Kinds = []
  /// The number of pending queries to which every terminal replies.
  package private(set) var awaitedAnswers = 0

  /// Whether frames are shown below the current contents instead of on the alternate screen.
  let isInline: Bool
  /// The characters being measured, in the order of the expected replies.
  private var probes: ArraySlice<WidthProbe> = []

  package init(
    size: Size, capabilities: TerminalCapabilities, pasteLimit: Int = 1 << 20, isInline: Bool = false
  ) {
    self.isInline = isInline
    encoder = FrameEncoder(size: size, capabilities: capabilities)
    encoder.isInline = isInline
    // Scrolling uses margins, which require a known position on the screen.
    if isInline { encoder.capabilities.scrolls = false }
    parser = InputParser(pasteLimit: pasteLimit)
  }

  /// The input that would complete the held-back bytes, or nil if none are held back.
  package var wait: InputParser.Wait? { parser.wait }

  /// The time after which a single escape is a key.
  package static let escapeDelay: Duration = .milliseconds(50)

  /// The maximum time for which the beginning of a sequence delays the keys after it.
  package static let holdLimit: Duration = .milliseconds(500)

  // MARK: Opening and restoring

  /// Appends the sequences that open the terminal: alternate screen, no cursor, no wrapping, mouse, pastes, focus.
  ///
  /// - Parameter asks: Whether to query its capabilities, with a last query to which every terminal replies.
  package mutating func enter(asks: Bool, into output: inout ContiguousArray<UInt8>) {
    encoder.repaint()
    encoder.cursorIsHidden()
    // A sequence that was cut off when the terminal was restored does not continue.
    parser = InputParser(pasteLimit: parser.pasteLimit)
    if isInline {
      // The position is saved together with the terminal's own style.
      output.append(contentsOf: "\r\u{1B}[m\u{1B}7\u{1B}[?25l\u{1B}[?7l".utf8)
    } else {
      output.append(contentsOf: "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l".utf8)
      if let mode = Self.mode(of: mouse) { output.append(contentsOf: "\u{1B}[?\(mode)h".utf8) }
      output.append(contentsOf: "\u{1B}[?1006h".utf8)
    }
    output.append(contentsOf: "\u{1B}[?2004h\u{1B}[?1004h".utf8)
    awaitedAnswers = 0
    let title = asks ? nil : title
    self.title = nil
    if let title { setTitle(title, into: &output) }
    if hasKeyboard { setKeyboard(into: &output) }
    if encoder.capabilities.knowsClusters { output.append(contentsOf: Self.clustersOn.utf8) }
    guard asks else { return }
    awaitedAnswers += 1
    output.append(contentsOf: "\u{1B}[?2026$p\u{1B}[?2027$p\u{1B}[>q\u{1B}[?u".utf8)
    measure(into: &output)
    output.append(contentsOf: "\u{1B}[c".utf8)
  }

  /// Appends the sequence that enables the keyboard protocol, with the codes of a Latin keyboard.
  ///
  /// The terminal is then queried for the setting. Keys after its reply use the protocol, and those before it do not.
  private mutating func setKeyboard(into output: inout ContiguousArray<UInt8>) {
    awaitedAnswers += 1
    output.append(contentsOf: "\u{1B}[>5u\u{1B}[?u\u{1B}[c".utf8)
  }

  /// Resizes the screen, and appends what must precede the next frame, which is written in full.
  ///
  /// This is necessary for an inline session even if its own size is unchanged, because the terminal may have moved
  /// lines.
  package mutating func resize(to size: Size, into output: inout ContiguousArray<UInt8>) {
    if isInline { encoder.savePlace(into: &output) }
    encoder.resize(to: size)
  }

  /// Appends characters whose width differs between terminals, with a query for the cursor position after each.
  ///
  /// They are written to the second row, because a position in the first row can look like a key, and then erased.
  private mutating func measure(into output: inout ContiguousArray<UInt8>) {
    guard !isInline, encoder.rows > 1, probes.isEmpty else { return }
    probes = WidthProbe.all[...]
    for probe in probes { output.append(contentsOf: "\u{1B}[2H\(probe.text)\u{1B}[6n".utf8) }
    output.append(contentsOf: "\u{1B}[2H\u{1B}[K".utf8)
  }

  /// Whether replies about widths are pending.
  package var isMeasuring: Bool { !probes.isEmpty }

  /// Stops waiting for replies about widths, which remain unknown even if replies arrive later.
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
      // All clusters of this kind have been measured.
      guard !probes.contains(where: { $0.measured == probe.measured }), !separated.contains(kind) else { return }
      encoder.capabilities.joinedClusters.insert(kind)
    }
  }

  /// The cursor after the next frame.
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

  /// Appends the sequence that changes the mouse events that an open terminal reports.
  package mutating func setMouse(_ mouse: MouseTracking, isOpen: Bool, into output: inout ContiguousArray<UInt8>) {
    guard mouse != self.mouse else { return }
    if isOpen, !isInline {
      if let mode = Self.mode(of: self.mouse) { output.append(contentsOf: "\u{1B}[?\(mode)l".utf8) }
      if let mode = Self.mode(of: mouse) { output.append(contentsOf: "\u{1B}[?\(mode)h".utf8) }
    }
    self.mouse = mouse
  }

  /// Appends the sequence that sets the title of the terminal window, without control characters.
  package mutating func setTitle(_ title: String, into output: inout ContiguousArray<UInt8>) {
    // The terminal saves its current title.
    if self.title == nil { output.append(contentsOf: "\u{1B}[22;2t".utf8) }
    let text = title.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }.prefix(256)
    let shown = String(String.UnicodeScalarView(text))
    self.title = shown
    output.append(contentsOf: "\u{1B}]2;\(shown)\u{1B}\\".utf8)
  }

  /// Appends the sequence that copies a text to the clipboard.
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

  /// Appends the sequences that restore the terminal, whatever was sent before.
  package func leave(into output: inout ContiguousArray<UInt8>) {
    // Cancels a sequence that was cut off in the middle.
    output.append(0x18)
    if encoder.capabilities.synchronizes { output.append(contentsOf: "\u{1B}[?2026l".utf8) }
    if encoder.capabilities.knowsClusters { output.append(contentsOf: "\u{1B}[?2027l".utf8) }
    if encoder.capabilities.decorates { output.append(contentsOf: "\u{1B}]8;;\u{1B}\\".utf8) }
    if hasKeyboard { output.append(contentsOf: "\u{1B}[<u".utf8) }
    if title != nil { output.append(contentsOf: "\u{1B}[23;2t".utf8) }
    if hasShape { output.append(contentsOf: "\u{1B}[0 q".utf8) }
    guard !isInline else {
      // Wrapping is restored last, because some terminals restore it together with the position.
      output.append(contentsOf: "\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?25h\u{1B}8\u{1B}[?7h".utf8)
      // The last frame remains, and later output begins below it.
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

  /// Processes bytes from the terminal.
  ///
  /// - Parameters:
  ///   - events: Receives the events.
  ///   - output: Receives the bytes to send in response.
  package mutating func receive(
    _ bytes: UnsafeRawBufferPointer, events: inout [InputEvent], output: inout ContiguousArray<UInt8>
  ) {
    var parser = parser
    parser.parse(bytes) { take($0, &events, &output) }
    self.parser = parser
  }

  /// Reports the input that was held back, because the time of ``wait`` has elapsed.
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
