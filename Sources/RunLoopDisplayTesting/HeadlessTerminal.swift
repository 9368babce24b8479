// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopSystem
import RunLoopCore
public import RunLoopDisplay

/// A terminal for tests, which emulates the screen and reads scripted input.
///
/// Frames pass through the encoder for real terminals to the emulated screen, and input passes through the parser for
/// real terminals to the client. The emulated terminal supports everything that the encoder may write, and records
/// anything else in ``errors``. Input arrives as from a real terminal: in a pass of the main loop, through a source 1
/// in the common modes and in the event-receive mode. In a test with `VirtualTime`, the main loop uses virtual time.
///
/// An application opens the terminal itself: schedule the input in advance and run the application. Alternatively,
/// open the terminal and present frames to it without an application.
///
/// ```swift
/// try VirtualTime.asMain { time in
///   let terminal = HeadlessTerminal(size: Size(width: 20, height: 3))
///   let window = Window()
///   let field = TextField(prompt: "> ", frame: Rect(x: 0, y: 0, width: 20, height: 1))
///   window.addSubview(field)
///   field.becomeFirstResponder()
///   let application = Application(device: terminal, window: window)
///   time.at(.milliseconds(100)) { MainActor.assumeIsolated { terminal.type("abc") } }
///   time.at(.milliseconds(200)) {
///     MainActor.assumeIsolated {
///       #expect(terminal.screen == "> abc")
///       application.terminate()
///     }
///   }
///   try application.run()
/// }
/// ```
@MainActor
public final class HeadlessTerminal: DisplayDevice {
  /// The optional capabilities of an emulated terminal.
  public struct Features: Hashable, Sendable {
    /// Whether synchronised output is supported (private mode 2026).
    public var synchronizes: Bool
    /// Whether clusters of scalars are treated as one character (private mode 2027).
    public var clusters: Bool
    /// Whether characters can be repeated.
    public var repeats: Bool
    /// Whether erased cells get the background colour.
    public var erasesWithColor: Bool
    /// Whether the keyboard protocol of kitty is supported.
    public var keyboard: Bool
    /// Whether rows can be scrolled, which depends on the terminal type.
    var scrolls: Bool { environment["TERM"]?.hasPrefix("linux") != true }
    /// The name that the terminal reports when queried, or `nil` if it does not support the query.
    public var version: String? { decorates ? "kitty(0.36.2)" : repeats || erasesWithColor ? "XTerm(380)" : nil }
    /// Whether links and styled underlines are supported, `false` by default; requires ``repeats`` and
    /// ``erasesWithColor``.
    public var decorates = false
    /// The environment of the terminal: `TERM`, `COLORTERM` and `NO_COLOR`.
    public var environment: [String: String]

    /// Creates a set of features.
    public init(
      synchronizes: Bool, clusters: Bool, repeats: Bool, erasesWithColor: Bool, keyboard: Bool,
      decorates: Bool = false, environment: [String: String]
    ) {
      self.decorates = decorates
      self.synchronizes = synchronizes
      self.clusters = clusters
      self.repeats = repeats
      self.erasesWithColor = erasesWithColor
      self.keyboard = keyboard
      self.environment = environment
    }

    /// All features, with RGB colours.
    public static let all = Features(
      synchronizes: true, clusters: true, repeats: true, erasesWithColor: true, keyboard: true, decorates: true,
      environment: ["TERM": "xterm-256color", "COLORTERM": "truecolor"])
    /// No features, with 16 colours.
    public static let none = Features(
      synchronizes: false, clusters: false, repeats: false, erasesWithColor: false, keyboard: false,
      environment: ["TERM": "xterm"])
  }

  /// The features of the terminal.
  public let features: Features

  /// The number of bytes that the system buffers for a terminal that does not read.
  public let outputCapacity: Int

  /// The client that the device calls, which is a weak reference and `nil` by default.
  public weak var client: (any DisplayDeviceClient)?

  /// The size in cells.
  public private(set) var size: Size

  /// The number of bytes of each presented frame, initially none, with 0 for a frame without changes.
  public private(set) var frameBytes: [Int] = []

  /// Whether output is neither shown nor recorded, to measure the cost of producing it; `false` by default.
  public var discardsOutput = false

  /// Whether the terminal is open, initially `false`.
  public private(set) var isOpen = false

  /// Whether the terminal is suspended until ``resume()`` is called, initially `false`.
  public private(set) var isSuspended = false

  private var emulator: ScreenEmulator
  private var session: TerminalSession
  /// The output that the terminal has not read.
  private var output: ContiguousArray<UInt8> = []
  /// The input that has not been read, and other events that have not been reported.
  private var inbox: ArraySlice<UInt8> = []
  private var pending: [InputEvent] = []
  private var isGone = false
  private var source: RunLoop.DescriptorSource?
  private var descriptor: Int32 = -1
  private var escapeTimer: EscapeTimer?
  private var measuringTimer: EscapeTimer?

  /// The faults of the terminal, none by default.
  public var faults = Faults() {
    didSet { emulator.faults = faults }
  }

  /// Creates a terminal without opening it.
  ///
  /// - Parameters:
  ///   - size: The size in cells, at least 1 by 1.
  ///   - features: The features of the terminal.
  ///   - outputCapacity: The number of bytes that the system buffers while the terminal does not read.
  public init(size: Size = Size(width: 80, height: 24), features: Features = .all, outputCapacity: Int = 4096) {
    self.size = Size(width: max(1, size.width), height: max(1, size.height))
    self.features = features
    self.outputCapacity = outputCapacity
    emulator = ScreenEmulator(size: self.size, features: features)
    session = TerminalSession(
      size: self.size, capabilities: TerminalCapabilities(environment: { features.environment[$0] }))
  }

  isolated deinit { tearDown() }

  // MARK: The device

  /// Opens the terminal.
  ///
  /// - Throws: A `DisplayError` if `TERM` is missing or `dumb`, or if the system has no descriptors left.
  public func open() throws(DisplayError) {
    guard !isOpen else { return }
    let name = features.environment["TERM"]
    guard let name, name != "dumb", !name.isEmpty else { throw .unusableTerminal(name: name) }
    let made = crl_event_create()
    guard made >= 0 else { throw .system(call: "eventfd", code: -made) }
    descriptor = made
    let source = RunLoop.DescriptorSource(
      descriptor: made, events: .readable,
      handler: MainActor.handler { [weak self] _, _ in self?.serve() })
    do {
      try RunLoop.main.add(source, forMode: .common)
      try RunLoop.main.add(source, forMode: .eventReceive)
    } catch {
      tearDown()
      throw .system(call: "epoll_ctl", code: 0)
    }
    self.source = source
    escapeTimer = EscapeTimer { [weak self] in self?.escapeIsOver() }
    measuringTimer = EscapeTimer { [weak self] in self?.session.endMeasuring() }
    isOpen = true
    isSuspended = false
    session.enter(asks: true, into: &output)
    measuringTimer?.set(session.isMeasuring ? .end(0) : nil)
    drain()
  }

  /// Restores the terminal.
  public func close() {
    guard isOpen else { return }
    if !isSuspended { leave() }
    isOpen = false
    tearDown()
  }

  /// Restores the terminal until ``resume()`` is called, as if the process were stopped.
  public func suspend() {
    guard isOpen, !isSuspended, !isGone else { return }
    client?.deviceWillSuspend(self)
    leave()
    isSuspended = true
  }

  /// Opens the terminal again, as if the process continued.
  public func resume() {
    guard isOpen, isSuspended else { return }
    isSuspended = false
    session.enter(asks: false, into: &output)
    drain()
    client?.deviceDidResume(self)
  }

  /// Whether a frame can be presented.
  public var isReadyForFrame: Bool { isOpen && !isSuspended && !isGone && output.count <= outputCapacity }

  /// Shows a frame.
  @discardableResult
  public func present(_ grid: borrowing Grid, scrolls: [ScrollHint] = []) -> Int {
    precondition(isReadyForFrame, "a frame was presented to a device that was not ready for it")
    let count = session.encoder.encode(grid, scrolls: scrolls, into: &output)
    if !discardsOutput { frameBytes.append(count) }
    drain()
    return count
  }

  /// The mouse events that the terminal reports.
  public var mouseTracking: MouseTracking {
    get { session.mouse }
    set {
      session.setMouse(newValue, isOpen: isOpen && !isSuspended, into: &output)
      drain()
    }
  }

  /// The cursor for the next frame, as opposed to ``shownCursor``, which is the one on the screen.
  public var cursor: TextCursor? {
    get { session.cursor }
    set { session.cursor = newValue }
  }

  /// Sets the title of the emulated window.
  public func setTitle(_ title: String) { send { $0.setTitle(title, into: &$1) } }

  /// Rings the bell, which ``bellCount`` counts.
  public func ringBell() { send { $1.append(0x07) } }

  /// Copies a text to the emulated clipboard.
  public func copy(_ text: String) { send { TerminalSession.copy(text, into: &$1) } }

  private func send(_ body: (inout TerminalSession, inout ContiguousArray<UInt8>) -> Void) {
    guard isOpen, !isSuspended else { return }
    body(&session, &output)
    drain()
  }

  /// Causes the next frame to be written in full.
  public func repaint() { session.encoder.repaint() }

  // MARK: The screen

  /// The text on the screen, without trailing blanks in each row and without trailing empty rows.
  public var screen: String {
    var rows = (0..<size.height).map { emulator.grid.text(row: $0) }
    while rows.last == "" { rows.removeLast() }
    return rows.joined(separator: "\n")
  }

  /// The position, visibility and shape of the cursor on the screen.
  public var shownCursor: TextCursor { emulator.cursor }

  /// The title of the window, or `nil` if it was never set.
  public var title: String? { emulator.title }

  /// The number of times that the bell rang.
  public var bellCount: Int { emulator.bellCount }

  /// The text on the clipboard, or `nil` if nothing was copied.
  public var clipboard: String? { emulator.clipboard }

  /// The cells of the screen.
  public var cells: Grid { emulator.grid }

  /// Returns the text of a row, without trailing blanks.
  ///
  /// - Precondition: The terminal has the row.
  public func line(_ row: Int) -> String { emulator.grid.text(row: row) }

  /// The output that the terminal did not understand or that real terminals handle differently.
  public var errors: [String] { emulator.errors }

  /// Whether keys are currently sent by the keyboard protocol.
  var sendsCodes: Bool { emulator.keyboards.last.map { $0 & 1 != 0 } ?? false }

  /// The private modes that are enabled, such as 1049 for the alternate screen and 25 for the cursor.
  public var modes: Set<Int> { emulator.modes }

  // MARK: Simulated events

  /// Whether the terminal reads output, `true` by default.
  ///
  /// While it does not, frames cannot be presented once the system's buffer is full.
  public var isReading = true {
    didSet { if isReading, !oldValue { wake() } }
  }

  /// Sends bytes, as if they had been typed.
  public func send(_ bytes: some Sequence<UInt8>) {
    guard isOpen, !isGone else { return }
    arrive(Array(bytes))
  }

  /// Delivers bytes after the terminal's latency.
  private func arrive(_ bytes: [UInt8]) {
    guard faults.latency > .zero else {
      inbox += bytes
      return wake()
    }
    RunLoop.main.schedule(
      in: faults.latency, mode: .common,
      block: MainActor.handler { [weak self] (_: Timer) in
        self?.inbox += bytes
        self?.wake()
      })
  }

  /// Resizes the window, and loses what was on the screen.
  public func resize(to size: Size) {
    self.size = Size(width: max(1, size.width), height: max(1, size.height))
    emulator.resize(to: self.size)
    session.resize(to: self.size, into: &output)
    pending.append(.resize(self.size))
    wake()
  }

  /// Disconnects the terminal.
  public func hangUp() {
    guard !isGone else { return }
    isGone = true
    pending.append(.hangUp)
    wake()
  }

  // MARK: Reading and writing

  private func wake() { if descriptor >= 0 { _ = crl_event_write(descriptor) } }

  private func serve() {
    _ = crl_event_read(descriptor)
    let wasReady = isReadyForFrame
    let wasRepainting = session.encoder.isRepainting
    drain()
    let bytes = inbox.prefix(max(1, faults.readLimit))
    // A slice is kept, so that many small reads do not each move the remaining bytes to the front.
    inbox = inbox.count > bytes.count ? inbox.dropFirst(bytes.count) : []
    if !inbox.isEmpty { wake() }
    var events: [InputEvent] = []
    bytes.withUnsafeBytes { session.receive($0, events: &events, output: &output) }
    let needsFrame = session.encoder.isRepainting && !wasRepainting
    events += pending
    pending = []
    drain()
    if !bytes.isEmpty || !events.isEmpty { client?.device(self, didRead: bytes.count, events: events) }
    escapeTimer?.set(session.wait)
    if !session.isMeasuring { measuringTimer?.set(nil) }
    if !wasReady, isReadyForFrame { client?.deviceIsReadyForFrame(self) }
    if needsFrame, isOpen, !isSuspended, !isGone { client?.deviceNeedsFrame(self) }
  }

  private func escapeIsOver() {
    var events: [InputEvent] = []
    session.flush(events: &events, output: &output)
    drain()
    escapeTimer?.set(session.wait)
    if !events.isEmpty { client?.device(self, didRead: 0, events: events) }
  }

  /// Writes pending output to the screen if the terminal is reading.
  private func drain() {
    guard isReading else { return }
    if !discardsOutput { emulator.write(output) }
    output.removeAll(keepingCapacity: true)
    guard !emulator.answers.isEmpty else { return }
    let answers = emulator.answers
    emulator.answers = []
    arrive(answers)
  }

  private func leave() {
    session.leave(into: &output)
    let isReading = isReading
    // The sequences that restore a terminal are written even if it is not reading.
    emulator.write(output)
    output.removeAll(keepingCapacity: true)
    emulator.answers = []
    self.isReading = isReading
  }

  private func tearDown() {
    source?.invalidate()
    source = nil
    for timer in [escapeTimer, measuringTimer] { timer?.invalidate() }
    escapeTimer = nil
    measuringTimer = nil
    if descriptor >= 0 { crl_close(descriptor) }
    descriptor = -1
  }
}
