// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopTerminal
internal import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// The descriptors of an open terminal, and the sources that serve it.
@MainActor
final class TerminalConnection {
  /// Separate descriptors, which are non-blocking.
  let reader: Int32
  let writer: Int32
  /// The number that identifies the saved modes of the output terminal.
  let number: Int32
  /// The number that identifies the saved modes of the input terminal, if it is another one.
  private let inputNumber: Int32?
  private var input: RunLoop.DescriptorSource?
  private var output: RunLoop.DescriptorSource?
  private var signals: [SignalSource] = []
  private var isWaiting = false

  /// Throws unless the descriptors are terminals, none of which a device has captured as the program's output.
  static func requireTerminals(_ descriptors: [Int32]) throws(DisplayError) {
    for descriptor in descriptors where crl_terminal_is_one(descriptor) != 1 {
      if crl_terminal_is_captured(descriptor) == 1 { throw .taken }
      throw .notATerminal(descriptor: descriptor)
    }
  }

  /// Opens a terminal again and saves its modes.
  init(input: Int32, output: Int32) throws(DisplayError) {
    let reader = crl_terminal_open_again(input)
    guard reader >= 0 else { throw .system(call: "open", code: -reader) }
    let writer = crl_terminal_open_again(output)
    guard writer >= 0 else {
      crl_terminal_close(reader)
      throw .system(call: "open", code: -writer)
    }
    var number: Int32?
    do throws(DisplayError) {
      let kept = try Self.keep(writer)
      number = kept
      inputNumber = crl_terminal_is_same(reader, writer) == 1 ? nil : try Self.keep(reader)
      self.number = kept
    } catch {
      if let number { crl_terminal_forget(number) }
      crl_terminal_close(reader)
      crl_terminal_close(writer)
      throw error
    }
    self.reader = reader
    self.writer = writer
  }

  /// Saves the modes of a terminal, and returns the number that identifies them.
  private static func keep(_ descriptor: Int32) throws(DisplayError) -> Int32 {
    let number = crl_terminal_keep(descriptor)
    switch -number {
    case ...0: return number
    case EBUSY: throw .taken
    case EMFILE: throw .tooManyTerminals(limit: Int(CRL_TERMINALS))
    default: throw .system(call: "tcgetattr", code: -number)
    }
  }

  /// The size of the terminal as far as it is used, or nil if the system does not report it.
  ///
  /// If the terminal reports no columns or rows, the usual number is assumed.
  var size: Size? {
    var columns: Int32 = 0
    var rows: Int32 = 0
    guard crl_terminal_size(writer, &columns, &rows) == 0 else { return nil }
    return Size(
      width: columns > 0 ? min(Int(columns), Terminal.maximumSide) : 80,
      height: rows > 0 ? min(Int(rows), Terminal.maximumSide) : 24)
  }

  /// Sets the modes for showing a screen, and returns 0 or a negative error number.
  func setRaw() -> Int32 {
    if let inputNumber { _ = crl_terminal_set_raw(inputNumber) }
    return crl_terminal_set_raw(number)
  }

  /// Restores the modes.
  func putBack() {
    crl_terminal_put_back(number)
    if let inputNumber { crl_terminal_put_back(inputNumber) }
  }

  /// Sets the bytes to write and the number of replies to wait for if the process ends, or nil after the terminal was
  /// restored.
  func prepareForEnd(_ bytes: ContiguousArray<UInt8>?, awaitedAnswers: Int = 0) {
    guard let bytes else {
      crl_terminal_prepare(number, nil, 0, 0)
      if let inputNumber { crl_terminal_prepare(inputNumber, nil, 0, 0) }
      return
    }
    bytes.withUnsafeBufferPointer {
      crl_terminal_prepare(number, $0.baseAddress, $0.count, inputNumber == nil ? Int32(awaitedAnswers) : 0)
      if let inputNumber { crl_terminal_prepare(inputNumber, $0.baseAddress, 0, Int32(awaitedAnswers)) }
    }
  }

  /// Waits for pending replies, and discards them.
  func dropAnswers(_ count: Int) { if count > 0 { crl_terminal_drop_answers(reader, Int32(count)) } }

  /// Serves the terminal on the main loop, including the event-receive mode.
  func serve(_ terminal: Terminal) throws(DisplayError) {
    let input = RunLoop.DescriptorSource(
      descriptor: reader, events: .readable,
      handler: MainActor.handler { [weak terminal] _, _ in terminal?.terminalIsReadable() })
    let output = RunLoop.DescriptorSource(
      descriptor: writer, events: .writable,
      handler: MainActor.handler { [weak terminal] _, _ in terminal?.terminalHasRoom() })
    output.pause()
    do {
      try RunLoop.main.add(input, forMode: .common)
      try RunLoop.main.add(input, forMode: .eventReceive)
      self.input = input
      try RunLoop.main.add(output, forMode: .common)
      self.output = output
      for signal in [SIGWINCH, SIGTSTP, SIGCONT] {
        let source = try SignalSource(
          signal: signal,
          handler: MainActor.handler { [weak terminal] source, _ in terminal?.terminalGot(signal: source.signal) })
        signals.append(source)
        try RunLoop.main.add(source, forMode: .common)
        try RunLoop.main.add(source, forMode: .eventReceive)
      }
    } catch let error as SignalError {
      if case .system(_, let error) = error { throw .system(call: error.call, code: error.number) }
      throw .system(call: "sigaction", code: EINVAL)
    } catch {
      if case RunLoopError.cannotWatch(_, let error) = error { throw .system(call: error.call, code: error.number) }
      throw .system(call: "epoll_ctl", code: EINVAL)
    }
  }

  /// Sets whether output is pending for which there was no room.
  func waitsForRoom(_ isWaiting: Bool) {
    guard isWaiting != self.isWaiting else { return }
    self.isWaiting = isWaiting
    if isWaiting { try? output?.resume() } else { output?.pause() }
  }

  func close() {
    input?.invalidate()
    output?.invalidate()
    for signal in signals { signal.invalidate() }
    crl_terminal_forget(number)
    if let inputNumber { crl_terminal_forget(inputNumber) }
    crl_terminal_close(reader)
    crl_terminal_close(writer)
  }
}
