// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopTerminal
internal import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The terminal in which a program runs, as a screen of cells.
///
/// Opening the device opens the terminal's file again, so that neither standard input nor standard output becomes
/// non-blocking for other code. The main loop serves it in the common modes. Nothing blocks on the terminal: frames
/// are written one at a time as far as there is room, and replies to queries are handled when they arrive.
///
/// The terminal is restored by ``close()``, when the process calls `exit`, when a signal or a fault ends it, before
/// the toolchain's backtracer prints, and while the process is stopped. The exit status is not affected: the process
/// still ends by that signal. Stack overflows are covered on the thread that has opened the device and on those of a
/// `WorkerPool`. Only `SIGKILL` and `_exit` leave the terminal as it is.
///
/// Output that other code writes to standard output or standard error meanwhile, for example with `print`, is captured
/// if these are the terminal. The last mebibyte of it is shown afterwards, and the rest is freed in each pass of the
/// main loop; nothing limits what is written before that. Child processes can open `/dev/stderr` to append to it.
///
/// When the device is closed, it waits up to half a second for replies that have not arrived, so that they do not
/// reach the next program that reads from the terminal. Keys typed meanwhile are lost.
///
/// Signals for which the program has its own handlers are left to these, which can call ``close()`` to restore the
/// terminal.
@MainActor
public final class Terminal: DisplayDevice {
  /// The client that the device calls, which is a weak reference and `nil` by default.
  public weak var client: (any DisplayDeviceClient)?

  /// The size in cells, from 1 to ``maximumSide`` in each direction and initially 80 by 24.
  ///
  /// Any part of the terminal beyond that size stays empty.
  public private(set) var size = Size(width: 80, height: 24)
  /// The maximum number of columns or rows that are used.
  ///
  /// A terminal can report 65,535 of each, for which there would not be enough memory.
  public static let maximumSide = 4096

  private let input: Int32
  private let output: Int32
  private let name: String?
  /// The number of rows to use below the current contents, or nil for the whole alternate screen.
  private let inlineRows: Int?
  private var state = TerminalState()
  private var session: TerminalSession
  private var connection: TerminalConnection?
  private var pending = OutputState()
  private var events: [InputEvent] = []
  private var timers: TerminalTimers?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)

  /// Creates a device for the terminal that is both standard input and standard output, without opening it.
  ///
  /// - Parameter inlineRows: The number of rows to use, starting at the cursor, as for a prompt or a progress bar, or
  ///   `nil` for the whole alternate screen. When the terminal is restored, the last frame remains, and later output
  ///   starts below it. Mouse events are not reported.
  public convenience init(inlineRows: Int? = nil) {
    self.init(input: STDIN_FILENO, output: STDOUT_FILENO, inlineRows: inlineRows)
  }

  /// Creates a device for the terminals behind two descriptors, such as a pseudo-terminal, without opening it.
  ///
  /// - Parameters:
  ///   - input: A descriptor of the terminal to read from.
  ///   - output: A descriptor of the terminal to write to, usually the same one.
  ///   - name: The terminal type, as in `TERM`, or `nil` for the value in the environment.
  ///   - inlineRows: The number of rows to use below the current contents, or `nil` for the alternate screen.
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

  // MARK: Opening and closing

  /// Opens the terminal: switches to the alternate screen and reports every key press and the mouse.
  ///
  /// Has no effect if the device is already open. A process can use up to eight terminals at a time. Each can be used
  /// by one device only, because only that device can restore it. A device that reads and writes different terminals
  /// uses both.
  ///
  /// - Throws: ``DisplayError/notATerminal(descriptor:)``, ``DisplayError/unusableTerminal(name:)``,
  ///   ``DisplayError/taken`` if another device is using the terminal, ``DisplayError/tooManyTerminals(limit:)``, or
  ///   ``DisplayError/system(call:code:)`` if there are no descriptors left or the terminal cannot be used.
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

  /// Restores the terminal, and shows the output that other code has written to it meanwhile.
  ///
  /// Waits up to one second if the terminal does not accept output.
  public func close() {
    switch state.close() {
    case .restoreAndRelease: leave()
    case .release: break
    default: return
    }
    tearDown()
    crl_terminal_show_output()
  }

  /// Restores the terminal, and stops the process together with its process group, as Ctrl-Z does.
  ///
  /// When the process continues, the terminal is opened again. If nothing could continue the process, as in a terminal
  /// without a shell, it is not stopped and the terminal is opened again at once.
  public func suspend() { suspend(group: true) }

  private func suspend(group: Bool) {
    guard state.phase == .open else { return }
    client?.deviceWillSuspend(self)
    // The client may have closed the device.
    guard state.suspend() == .restoreAndStop, let connection else { return }
    leave()
    crl_terminal_show_output()
    crl_terminal_stop(group ? connection.writer : -1)
    // When the process continues, SIGCONT opens the terminal again. If it was not stopped, the timer does.
    timers?.resume.set(.more)
  }

  /// Opens the terminal again.
  private func resume() {
    guard state.resume() == .take, let connection else { return }
    timers?.resume.set(nil)
    guard connection.setRaw() == 0 else { return hangUp() }
    crl_terminal_capture_output(connection.writer)
    // Unfinished output is discarded, and the screen is written in full.
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
    // This comes first, so that an exit in the middle does not restore the terminal again.
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

  /// Prepares the terminal to be restored if the process ends.
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

  /// Whether a frame can be presented, because the terminal is open and earlier output has been written.
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

  /// The mouse events that the terminal reports, which can be set before it is opened; `buttons` by default.
  public var mouseTracking: MouseTracking {
    get { session.mouse }
    set { send { $0.setMouse(newValue, isOpen: state.phase == .open, into: &$1) } }
  }

  /// The cursor, which is shown with the next frame.
  public var cursor: TextCursor? {
    get { session.cursor }
    set {
      let hadShape = session.hasShape
      session.cursor = newValue
      if session.hasShape != hadShape, state.phase == .open { prepareForEnd() }
    }
  }

  /// Sets the title of the terminal window while the terminal is open.
  ///
  /// Control characters are omitted, and the title is cut off after 256 characters.
  public func setTitle(_ title: String) {
    guard state.phase == .open else { return }
    send { $0.setTitle(title, into: &$1) }
  }

  /// Rings the terminal's bell if the terminal is open.
  public func ringBell() {
    guard state.phase == .open else { return }
    send { $1.append(0x07) }
  }

  /// Copies a text to the clipboard, which also works over SSH.
  ///
  /// Terminals may ignore the control sequence (OSC 52), or ask the user for permission. A text of more than
  /// ``maximumCopy`` bytes is not sent.
  public func copy(_ text: String) {
    guard state.phase == .open, text.utf8.count <= Self.maximumCopy else { return }
    send { TerminalSession.copy(text, into: &$1) }
  }

  /// The maximum length of a text for the clipboard in bytes, because terminals drop longer ones.
  public static let maximumCopy = 74_994

  /// Sends a sequence that is not part of a frame, after any output in progress.
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

  /// Writes as much as there is room for, and returns false if the terminal was disconnected.
  @discardableResult
  private func write() -> Bool {
    guard let connection else { return true }
    var action = pending.isIdle ? OutputState.Action.finish : .write
    while action == .write {
      let next = pending.next
      let result = pending.bytes.withUnsafeBytes {
        crl_terminal_write_frame(connection.writer, $0.baseAddress?.advanced(by: next.lowerBound), next.count)
      }
      action = pending.note(Int(result), wouldBlock: -Int(EAGAIN))
    }
    // A disconnected terminal is writable, so the error occurs again where the client can be called.
    connection.waitsForRoom(!pending.isIdle)
    return action != .hangUp
  }

  func terminalHasRoom() {
    guard write() else { return hangUp() }
    if isReadyForFrame { client?.deviceIsReadyForFrame(self) }
  }

  // MARK: Input

  /// Called when there is input, or the terminal was disconnected.
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
    // Bytes that have arrived meanwhile belong to the escape, because the loop was late and not the terminal.
    let count = Int(crl_terminal_read(connection.reader, buffer.baseAddress, buffer.count))
    take(max(0, count)) { session, events, replies in
      let wait = session.wait
      if count > 0 {
        session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), events: &events, output: &replies)
      }
      // The time limit for a sequence applies even if more of it arrives.
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
    // The replies may have been written together with all earlier output.
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

  /// Called when the process received a signal that concerns the terminal.
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
    // The sequence that restores the terminal depends on the number of rows.
    prepareForEnd()
    write()
  }
}
