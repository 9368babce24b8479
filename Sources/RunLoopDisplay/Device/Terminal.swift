// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopTerminal
internal import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The terminal that a program runs in, as a screen of cells.
///
/// Taking it opens the terminal again, so that neither the standard input nor the standard output becomes non-blocking
/// for other code, and serves it on the main loop, in the common modes. Nothing waits for the terminal: frames are
/// written as far as there is room, one at a time, and the terminal's answers about itself are taken into account when
/// they arrive.
///
/// The terminal is restored by ``close()``, when the process calls `exit`, when a signal or a fault ends it, before the
/// toolchain's backtracer prints, and while the process is stopped. The kind of end does not change: the process still
/// ends by that signal. A stack overflow is covered on the thread that has taken the terminal, and on those of a
/// `WorkerPool`. Only `SIGKILL`, and `_exit`, leave the terminal as it is.
///
/// What other code writes to the standard output or the standard error meanwhile, as `print` does, is kept if that is
/// the terminal, and shown afterwards: the last mebibyte of it. The rest is freed when the main loop makes a pass;
/// nothing limits what is written before that. Children can open `/dev/stderr` to append to it.
///
/// The terminal's answers about itself that have not arrived at its end are waited for, for half a second, so that they
/// do not reach the program that reads the terminal next. What is typed meanwhile is lost.
///
/// Signals for which the program has a handler of its own stay with it; to restore the terminal, the handlers call
/// ``close()``.
@MainActor
public final class Terminal: DisplayDevice {
  /// The client that the device calls; held weakly.
  public weak var client: (any DisplayDeviceClient)?

  /// The size in cells; at least 1 by 1, and at most ``maximumSide`` in each direction: what a terminal has beyond that
  /// stays empty.
  public private(set) var size = Size(width: 80, height: 24)
  /// The most columns or rows of a terminal that are used: a terminal can say that it has 65,535 of each, for which
  /// there would be no memory.
  public static let maximumSide = 4096

  private let input: Int32
  private let output: Int32
  private let name: String?
  /// How many rows are used, below what is on the screen; nil: all, on the terminal's other screen.
  private let inlineRows: Int?
  private var state = TerminalState()
  private var session: TerminalSession
  private var connection: TerminalConnection?
  private var pending = OutputState()
  private var events: [InputEvent] = []
  private var timers: TerminalTimers?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)

  /// Makes a device of the terminal that is both the standard input and the standard output; it is not taken yet.
  ///
  /// - Parameter inlineRows: How many rows are used, from the row of the cursor on, as for a prompt or a progress bar;
  ///   nil means all, on the terminal's other screen. The last frame stays when the terminal is restored, and what is
  ///   written then begins below it. The mouse is the terminal's own.
  public convenience init(inlineRows: Int? = nil) {
    self.init(input: STDIN_FILENO, output: STDOUT_FILENO, inlineRows: inlineRows)
  }

  /// Makes a device of the terminals behind two descriptors, as of a pseudo-terminal; it is not taken yet.
  ///
  /// - Parameters:
  ///   - input: A descriptor of the terminal that is read.
  ///   - output: A descriptor of the terminal that is written, usually the same.
  ///   - name: The kind of terminal, as in `TERM`; nil means the environment's value.
  ///   - inlineRows: How many rows are used, below what is on the screen; nil means all, on its other screen.
  public init(input: Int32, output: Int32, name: String? = nil, inlineRows: Int? = nil) {
    self.input = input
    self.output = output
    self.name = name
    self.inlineRows = inlineRows.map { max(1, $0) }
    session = TerminalSession(
      size: size,
      capabilities: TerminalCapabilities { variable in
        if variable == "TERM", let name { return name }
        return Environment.word(variable)
      }, isInline: inlineRows != nil)
  }

  isolated deinit {
    close()
    buffer.deallocate()
  }

  // MARK: Taking and restoring

  /// Takes the terminal: its alternate screen, every key as it is pressed, the mouse.
  ///
  /// It has no effect if this device has taken it already. A process can have eight terminals taken at a time, and each
  /// of them by one device: only that one knows how to restore it. A device that reads one terminal and writes to
  /// another takes both.
  ///
  /// - Throws: ``DisplayError/notATerminal(descriptor:)``, ``DisplayError/unusableTerminal(name:)``,
  ///   ``DisplayError/taken`` if another device has taken the terminal, ``DisplayError/tooManyTerminals(limit:)``, or
  ///   ``DisplayError/system(call:code:)`` if the system has no descriptor left or the terminal cannot be used.
  public func open() throws(DisplayError) {
    guard state.phase == .closed else { return }
    try TerminalConnection.requireTerminals([input, output])
    let name = name ?? Environment.word("TERM")
    guard let name, !name.isEmpty, name != "dumb" else { throw .unusableTerminal(name: name) }
    let connection = try TerminalConnection(input: input, output: output)
    self.connection = connection
    do throws(DisplayError) {
      try connection.serve(self)
      let answer = connection.setRaw()
      if answer < 0 { throw .system(call: "tcsetattr", code: -answer) }
    } catch {
      tearDown()
      throw error
    }
    timers = TerminalTimers(
      escape: EscapeTimer { [weak self] in self?.escapeIsOver() },
      resume: EscapeTimer { [weak self] in self?.resume() },
      measuring: EscapeTimer { [weak self] in self?.session.endMeasuring() })
    noteSize()
    state.open()
    crl_terminal_capture_output(connection.writer)
    pending.discard()
    pending.append { session.enter(asks: true, into: &$0) }
    timers?.measuring.set(session.isMeasuring ? .end(0) : nil)
    prepareForEnd()
    write()
  }

  /// Restores the terminal as it was found, and shows what other code has written to it meanwhile.
  ///
  /// It waits up to a second for a terminal that does not read.
  public func close() {
    switch state.close() {
    case .restoreAndRelease: leave()
    case .release: break
    default: return
    }
    tearDown()
    crl_terminal_show_output()
  }

  /// Restores the terminal for a time and stops the process, together with its group, as the terminal's own key does.
  ///
  /// When the process continues, the terminal is taken again. If nothing could make it continue, as in a terminal
  /// without a shell, it is not stopped, and the terminal is taken again at once.
  public func suspend() { suspend(group: true) }

  private func suspend(group: Bool) {
    guard state.phase == .open else { return }
    client?.deviceWillSuspend(self)
    // The client may have closed it.
    guard state.suspend() == .restoreAndStop, let connection else { return }
    leave()
    crl_terminal_show_output()
    crl_terminal_stop(group ? connection.writer : -1)
    // It continues: the signal that says so takes the terminal again; if it was not stopped, the timer does.
    timers?.resume.set(.more)
  }

  /// Takes the terminal again.
  private func resume() {
    guard state.resume() == .take, let connection else { return }
    timers?.resume.set(nil)
    guard connection.setRaw() == 0 else { return hangUp() }
    crl_terminal_capture_output(connection.writer)
    // What was under way is not finished: it is written in full again.
    pending.discard()
    pending.append {
      $0.append(0x18)
      session.enter(asks: false, into: &$0)
    }
    prepareForEnd()
    write()
    let before = size
    noteSize()
    client?.deviceDidResume(self)
    if size != before { client?.device(self, didRead: 0, events: [.resize(size)]) }
    if isReadyForFrame { client?.deviceIsReadyForFrame(self) }
  }

  private func leave() {
    guard let connection else { return }
    // First, so that an end in the middle does not do it again.
    connection.prepareForEnd(nil)
    pending.discard()
    pending.append { session.leave(into: &$0) }
    _ = pending.bytes.withUnsafeBytes {
      crl_terminal_write_all(connection.writer, $0.baseAddress, $0.count, 1000)
    }
    pending.discard()
    connection.dropAnswers(session.awaitedAnswers)
    connection.putBack()
  }

  /// Lets the terminal be given back if the process ends.
  private func prepareForEnd() {
    var bytes: ContiguousArray<UInt8> = []
    session.leave(into: &bytes)
    connection?.prepareForEnd(bytes, awaitedAnswers: session.awaitedAnswers)
  }

  private func tearDown() {
    timers?.invalidate()
    timers = nil
    connection?.close()
    connection = nil
    pending = OutputState()
  }

  // MARK: Frames

  /// Whether a frame can be presented: the terminal is taken, and the earlier output has gone to it.
  public var isReadyForFrame: Bool { state.phase == .open && pending.isIdle }

  /// Shows a frame.
  @discardableResult
  public func present(_ grid: borrowing Grid, scrolls: [ScrollHint] = []) -> Int {
    precondition(isReadyForFrame, "a frame was presented to a terminal that was not ready for it")
    let count = pending.append { session.encoder.encode(grid, scrolls: scrolls, into: &$0) }
    if count > 0 {
      write()
      timers?.capturedOutput.look()
    }
    return count
  }

  /// What the terminal reports of the mouse; the buttons, unless it is set, which can be before the terminal is taken.
  public var mouseTracking: MouseTracking {
    get { session.mouse }
    set { send { $0.setMouse(newValue, isOpen: state.phase == .open, into: &$1) } }
  }

  /// The cursor, shown with the next frame.
  public var cursor: TextCursor? {
    get { session.cursor }
    set {
      let hadShape = session.hasShape
      session.cursor = newValue
      if session.hasShape != hadShape, state.phase == .open { prepareForEnd() }
    }
  }

  /// Sets the title of the terminal's window while the terminal is taken; control characters, and what is beyond 256
  /// characters, are left out.
  public func setTitle(_ title: String) {
    guard state.phase == .open else { return }
    send { $0.setTitle(title, into: &$1) }
  }

  /// Rings the terminal's bell while the terminal is taken.
  public func ringBell() {
    guard state.phase == .open else { return }
    send { $1.append(0x07) }
  }

  /// Puts a text on the clipboard, also over SSH.
  ///
  /// Terminals may ignore the sequence for it, OSC 52, or carry it out when the user allows it. A text of more than
  /// ``maximumCopy`` bytes is not sent.
  public func copy(_ text: String) {
    guard state.phase == .open, text.utf8.count <= Self.maximumCopy else { return }
    send { TerminalSession.copy(text, into: &$1) }
  }

  /// The longest text, in bytes, that is sent for the clipboard: terminals drop longer ones.
  public static let maximumCopy = 74_994

  /// Sends something beside the frames, behind what is under way.
  private func send(_ body: (inout TerminalSession, inout ContiguousArray<UInt8>) -> Void) {
    guard state.phase == .open else {
      var none: ContiguousArray<UInt8> = []
      return body(&session, &none)
    }
    let wasReady = isReadyForFrame
    pending.append { body(&session, &$0) }
    prepareForEnd()
    write()
    if !wasReady, isReadyForFrame { client?.deviceIsReadyForFrame(self) }
  }

  /// Makes the next frame be written in full.
  public func repaint() { session.encoder.repaint() }

  /// Writes as far as there is room; false if the terminal has gone.
  @discardableResult
  private func write() -> Bool {
    guard let connection else { return true }
    var action = pending.isIdle ? OutputState.Action.finish : .write
    while action == .write {
      let next = pending.next
      let result = pending.bytes.withUnsafeBytes {
        crl_terminal_write(connection.writer, $0.baseAddress?.advanced(by: next.lowerBound), next.count)
      }
      action = pending.note(Int(result), wouldBlock: -Int(EAGAIN))
    }
    // A terminal that has gone has room, and then the same error comes where the client can be called.
    connection.waitsForRoom(!pending.isIdle)
    return action != .hangUp
  }

  /// There is room again.
  func terminalHasRoom() {
    guard write() else { return hangUp() }
    if isReadyForFrame { client?.deviceIsReadyForFrame(self) }
  }

  // MARK: Input

  /// There is something to read, or the terminal has gone.
  func terminalIsReadable() {
    guard state.phase == .open, let connection else { return }
    let count = Int(crl_terminal_read(connection.reader, buffer.baseAddress, buffer.count))
    if count == -Int(EAGAIN) { return }
    guard count > 0 else { return hangUp() }
    take(count) { session, events, replies in
      session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), events: &events, output: &replies)
    }
  }

  private func escapeIsOver() {
    guard state.phase == .open, let connection else { return }
    // What has arrived meanwhile belongs to the escape: the loop was late, not the terminal.
    let count = Int(crl_terminal_read(connection.reader, buffer.baseAddress, buffer.count))
    take(max(0, count)) { session, events, replies in
      let wait = session.wait
      if count > 0 {
        session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), events: &events, output: &replies)
      }
      // The time for the end of a sequence is over also if more of it arrives.
      if count <= 0 || wait != .more && wait == session.wait { session.flush(events: &events, output: &replies) }
    }
  }

  private func take(
    _ count: Int, _ parse: (inout TerminalSession, inout [InputEvent], inout ContiguousArray<UInt8>) -> Void
  ) {
    let capabilities = session.encoder.capabilities
    let awaited = session.awaitedAnswers
    let wasRepainting = session.encoder.isRepainting
    var replies: ContiguousArray<UInt8> = []
    var events = events
    self.events = []
    parse(&session, &events, &replies)
    if !replies.isEmpty || capabilities != session.encoder.capabilities || awaited != session.awaitedAnswers {
      prepareForEnd()
    }
    let wasReady = isReadyForFrame
    if !replies.isEmpty {
      pending.append { $0.append(contentsOf: replies) }
      write()
    }
    timers?.escape.set(session.wait)
    if !session.isMeasuring { timers?.measuring.set(nil) }
    let needsFrame = session.encoder.isRepainting
    client?.device(self, didRead: count, events: events)
    // The answers may have found room for all that was before them.
    if !wasReady, isReadyForFrame { client?.deviceIsReadyForFrame(self) }
    if !wasRepainting, needsFrame, state.phase == .open { client?.deviceNeedsFrame(self) }
    events.removeAll(keepingCapacity: true)
    if self.events.isEmpty { self.events = events }
  }

  private func hangUp() {
    guard state.hangUp() == .releaseAndReport else { return }
    tearDown()
    client?.device(self, didRead: 0, events: [.hangUp])
  }

  // MARK: Signals

  /// The process got a signal that concerns the terminal.
  func terminalGot(signal: Int32) {
    switch signal {
    case SIGWINCH:
      guard state.phase == .open else { return }
      let (before, wasReady) = (size, isReadyForFrame)
      noteSize()
      if size != before {
        client?.device(self, didRead: 0, events: [.resize(size)])
      } else if session.isInline {
        client?.deviceNeedsFrame(self)
      }
      if !wasReady, isReadyForFrame { client?.deviceIsReadyForFrame(self) }
    case SIGTSTP: suspend(group: false)
    default: resume()
    }
  }

  private func noteSize() {
    guard var found = connection?.size else { return }
    found.height = min(found.height, inlineRows ?? .max)
    guard found != size || session.isInline || state.phase == .closed else { return }
    size = found
    guard state.phase == .open else { return session.encoder.resize(to: found) }
    pending.append { session.resize(to: found, into: &$0) }
    // The end depends on the number of rows.
    prepareForEnd()
    write()
  }
}
