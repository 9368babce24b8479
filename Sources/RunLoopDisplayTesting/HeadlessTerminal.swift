// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopSystem
import RunLoopCore
public import RunLoopDisplay

/// A terminal for tests: frames go through the encoder of real ones to an emulated screen, and scripted input through
/// the parser of real ones to the client.
///
/// The emulated terminal understands what the encoder may write, and notes anything else in ``errors``. Input arrives
/// as it does from a real terminal: in a pass of the main loop, through a source 1 in the common modes and the one for
/// events. On the main thread of a test with `VirtualTime`, the main loop is the one on virtual time.
///
/// An application takes the terminal itself: write down beforehand what happens at which time, and run it. Or take the
/// terminal, and present frames to it, without an application.
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
  /// What an emulated terminal can do beyond what every terminal can.
  public struct Features: Hashable, Sendable {
    /// Synchronised output, the private mode 2026.
    public var synchronizes: Bool
    /// Clusters of scalars are characters, the private mode 2027.
    public var clusters: Bool
    /// A character can be repeated.
    public var repeats: Bool
    /// What is erased gets the background's colour.
    public var erasesWithColor: Bool
    /// The keyboard protocol of kitty.
    public var keyboard: Bool
    /// Rows can be scrolled by their number, by the name of the terminal.
    var scrolls: Bool { environment["TERM"]?.hasPrefix("linux") != true }
    /// The name that the terminal says when asked; nil: it does not understand the question.
    public var version: String? { decorates ? "kitty(0.36.2)" : repeats || erasesWithColor ? "XTerm(380)" : nil }
    /// Links, and underlines of several shapes and colours; terminals with them can repeat and erase with colour too.
    public var decorates = false
    /// The environment in which it runs: `TERM`, `COLORTERM`, `NO_COLOR`.
    public var environment: [String: String]

    /// Makes a set of features.
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

    /// All of them, and colours by their parts.
    public static let all = Features(
      synchronizes: true, clusters: true, repeats: true, erasesWithColor: true, keyboard: true, decorates: true,
      environment: ["TERM": "xterm-256color", "COLORTERM": "truecolor"])
    /// None of them, and sixteen colours.
    public static let none = Features(
      synchronizes: false, clusters: false, repeats: false, erasesWithColor: false, keyboard: false,
      environment: ["TERM": "xterm"])
  }

  /// What the terminal can do.
  public let features: Features

  /// How many bytes the system keeps for a terminal that does not read.
  public let outputCapacity: Int

  /// What the device calls; held weakly.
  public weak var client: (any DisplayDeviceClient)?

  /// The size in cells.
  public private(set) var size: Size

  /// The bytes of each frame that was presented, in order; 0 for one that changed nothing.
  public private(set) var frameBytes: [Int] = []

  /// Whether what is written is neither shown nor recorded, so that only the cost of making it is left: for
  /// measurements.
  public var discardsOutput = false

  /// Whether the terminal is taken.
  public private(set) var isOpen = false

  /// Whether the terminal was restored for a time, until ``resume()``.
  public private(set) var isSuspended = false

  private var emulator: ScreenEmulator
  private var session: TerminalSession
  /// What was written and the terminal has not read.
  private var output: ContiguousArray<UInt8> = []
  /// What was typed and not read, and what else is to be reported.
  private var inbox: ArraySlice<UInt8> = []
  private var pending: [InputEvent] = []
  private var isGone = false
  private var source: RunLoop.DescriptorSource?
  private var descriptor: Int32 = -1
  private var escapeTimer: EscapeTimer?
  private var measuringTimer: EscapeTimer?

  /// What goes wrong with the terminal, from now on.
  public var faults = Faults() {
    didSet { emulator.faults = faults }
  }

  /// Makes a terminal that is not taken yet.
  ///
  /// - Parameters:
  ///   - size: The size in cells; at least 1 by 1.
  ///   - features: What it can do.
  ///   - outputCapacity: How many bytes the system keeps while it does not read.
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

  /// Takes the terminal.
  ///
  /// - Throws: `DisplayError` as a real terminal does: if `TERM` is missing or `dumb`, or the system has no descriptor
  ///   left.
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

  /// Restores the terminal until ``resume()``, as if the process were stopped.
  public func suspend() {
    guard isOpen, !isSuspended, !isGone else { return }
    client?.deviceWillSuspend(self)
    leave()
    isSuspended = true
  }

  /// Takes the terminal again, as if the process had been continued.
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

  /// What the terminal reports of the mouse.
  public var mouseTracking: MouseTracking {
    get { session.mouse }
    set {
      session.setMouse(newValue, isOpen: isOpen && !isSuspended, into: &output)
      drain()
    }
  }

  /// The cursor that was set for the next frame; what is shown is ``shownCursor``.
  public var cursor: TextCursor? {
    get { session.cursor }
    set { session.cursor = newValue }
  }

  /// Sets the title of the emulated window.
  public func setTitle(_ title: String) { send { $0.setTitle(title, into: &$1) } }

  /// Rings the bell, which is counted.
  public func ringBell() { send { $1.append(0x07) } }

  /// Puts a text on the emulated clipboard.
  public func copy(_ text: String) { send { TerminalSession.copy(text, into: &$1) } }

  private func send(_ body: (inout TerminalSession, inout ContiguousArray<UInt8>) -> Void) {
    guard isOpen, !isSuspended else { return }
    body(&session, &output)
    drain()
  }

  /// Lets the next frame be written in full.
  public func repaint() { session.encoder.repaint() }

  // MARK: What is seen

  /// The text on the screen, without the blanks at the ends of its rows and the rows without text at its end.
  public var screen: String {
    var rows = (0..<size.height).map { emulator.grid.text(row: $0) }
    while rows.last == "" { rows.removeLast() }
    return rows.joined(separator: "\n")
  }

  /// Where the cursor is, and whether and how it is visible.
  public var shownCursor: TextCursor { emulator.cursor }

  /// The title of the window, as it was set last; nil: it was not.
  public var title: String? { emulator.title }

  /// How often the bell has rung.
  public var bellCount: Int { emulator.bellCount }

  /// The text on the clipboard; nil: none was put there.
  public var clipboard: String? { emulator.clipboard }

  /// The cells of the screen.
  public var cells: Grid { emulator.grid }

  /// The text of a row, without the blanks at its end.
  ///
  /// - Precondition: The terminal has the row.
  public func line(_ row: Int) -> String { emulator.grid.text(row: row) }

  /// What the terminal did not understand, or what real terminals do not agree about; nothing if all is well.
  public var errors: [String] { emulator.errors }

  /// Whether keys are sent by the keyboard protocol now.
  var sendsCodes: Bool { emulator.keyboards.last.map { $0 & 1 != 0 } ?? false }

  /// The private modes that are set: 1049 the other screen, 25 the cursor, and so on.
  public var modes: Set<Int> { emulator.modes }

  // MARK: What happens to it

  /// Whether the terminal reads what is written; while it does not, no further frame can be presented once the system's
  /// buffer is full.
  public var isReading = true {
    didSet { if isReading, !oldValue { wake() } }
  }

  /// Bytes arrive, as if they had been typed.
  public func send(_ bytes: some Sequence<UInt8>) {
    guard isOpen, !isGone else { return }
    arrive(Array(bytes))
  }

  /// Lets bytes arrive, in their time.
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

  /// The window gets another size, and what was on the screen is lost.
  public func resize(to size: Size) {
    self.size = Size(width: max(1, size.width), height: max(1, size.height))
    emulator.resize(to: self.size)
    session.resize(to: self.size, into: &output)
    pending.append(.resize(self.size))
    wake()
  }

  /// The terminal goes away.
  public func hangUp() {
    guard !isGone else { return }
    isGone = true
    pending.append(.hangUp)
    wake()
  }

  // MARK: Serving

  private func wake() { if descriptor >= 0 { _ = crl_event_write(descriptor) } }

  private func serve() {
    _ = crl_event_read(descriptor)
    let wasReady = isReadyForFrame
    let wasRepainting = session.encoder.isRepainting
    drain()
    let bytes = inbox.prefix(max(1, faults.readLimit))
    // Not moved to the front for each of many small reads.
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

  /// Brings what was written to the screen, as far as the terminal reads.
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
    // What is restored is written while one waits.
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
