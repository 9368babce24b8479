// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
public import RunLoopSystemEvents

/// A program that was started as a child of this process.
///
/// Its descriptor (`pidfd`) is made with it, so that a signal never reaches another process that reuses its number
/// later, whoever reaps it. Its standard streams may be pipes, whose other ends are ``ByteStream``s.
///
/// The child inherits only what is passed to it: all other descriptors are closed. Signals have their defaults there,
/// except those that this process ignores; `SIGPIPE` always has its default. None is blocked.
///
/// The child has to be reaped when it has ended: by a `ChildProcessSource`, made with
/// `init(_:leavesStatus:handler:)`, or by other code that waits for ``process``. The child goes on
/// when this object is released. Can be used from any thread.
public final class SpawnedProcess: Sendable {
  /// The kinds of standard streams of the child.
  public enum Redirection: Hashable, Sendable {
    /// This process's own.
    case inherited
    /// `/dev/null`.
    case null
    /// A pipe, whose other end is a stream of this object.
    case pipe
    /// A descriptor of this process, which stays the caller's.
    case descriptor(Int32)
    /// For the standard error: the same as the standard output.
    case standardOutput
    /// A pseudo-terminal, which is the controlling terminal of the child and of the session that it then leads.
    ///
    /// All streams of this kind are one terminal. What the child writes there is read from ``standardOutput`` or, if
    /// only the standard error is a terminal, from ``standardError``; what is written to ``standardInput`` is typed
    /// there. Closing that stream ends nothing: type the character 4 (control-D) at the beginning of a line. The
    /// terminal is closed with its last stream of this object, which hangs up (`SIGHUP`) on the child.
    case terminal
  }

  /// A word for a program, which on Linux is bytes and need not be text.
  public struct Word: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The bytes, without an end mark.
    public let bytes: [UInt8]

    /// Makes a word of bytes.
    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// Makes a word of text, as UTF-8.
    public init(_ text: String) { bytes = Array(text.utf8) }

    /// Makes a word of text, as UTF-8.
    public init(stringLiteral text: String) { self.init(text) }

    /// Makes a word of a path.
    public init(_ path: FileChangeSource.Path) { bytes = path.bytes }

    /// The word as text; bytes that are not UTF-8 become replacement characters.
    public var string: String { String(decoding: bytes, as: UTF8.self) }
  }

  /// How a program is started.
  public struct Options: Sendable {
    /// The child's environment; nil means this process's.
    public var environment: [String: String]? {
      get {
        environmentWords.map { Dictionary($0.map { ($0.key.string, $0.value.string) }) { first, _ in first } }
      }
      set {
        environmentWords = newValue.map { variables in
          Dictionary(variables.map { (Word($0.key), Word($0.value)) }) { first, _ in first }
        }
      }
    }
    /// The child's environment as bytes, of which ``environment`` is the text; nil means this process's.
    public var environmentWords: [Word: Word]?
    /// The directory where the child starts; nil means this process's.
    public var directory: String? {
      get { directoryWord?.string }
      set { directoryWord = newValue.map { Word($0) } }
    }
    /// The directory where the child starts as bytes, of which ``directory`` is the text; nil means this process's.
    public var directoryWord: Word?
    /// The child's standard input.
    public var standardInput = Redirection.inherited
    /// The child's standard output.
    public var standardOutput = Redirection.inherited
    /// The child's standard error.
    public var standardError = Redirection.inherited
    /// Further descriptors, by their numbers in the child.
    ///
    /// The numbers are from 3 to 65535, and there are at most 200. The descriptors stay the caller's.
    public var descriptors: [Int32: Int32] = [:]
    /// The size of the terminal of the streams that are one.
    public var terminalSize = TerminalSize(columns: 80, rows: 24)
    /// Whether the child leads a process group of its own, so that a terminal's interrupts do not reach it.
    public var leadsProcessGroup = false
    /// Whether the child leads a session of its own, without a terminal, and with that a process group.
    public var leadsSession = false

    /// The usual behaviour.
    public init() {}
  }

  /// The program's number, which may be reused for another process when it has been reaped.
  public var process: Int32 { child.process }
  /// The process itself.
  public let reference: ProcessReference
  /// Writes to the child's standard input, if that is a pipe; not open yet.
  public let standardInput: OutputByteStream?
  /// Reads the child's standard output, if that is a pipe; not open yet.
  public let standardOutput: InputByteStream?
  /// Reads the child's standard error, if that is a pipe of its own; not open yet.
  public let standardError: InputByteStream?

  let child: ChildProcess
  /// Whether it leads a process group.
  let leadsGroup: Bool
  /// This end of the terminal, which its streams keep open.
  private let terminal: WeakDescriptor

  /// Starts a program.
  ///
  /// It returns when the program runs, or cannot run.
  ///
  /// - Parameters:
  ///   - program: A path, or a name without a slash, which is looked for in the directories of this process's `PATH`.
  ///   - arguments: The words after the program's name.
  ///   - options: How the program is started.
  /// - Throws: ``SpawnError``; then nothing was started, and no descriptor stays open.
  public convenience init(
    _ program: String, _ arguments: [String] = [], options: Options = Options()
  ) throws(SpawnError) {
    try self.init(Word(program), arguments.map { Word($0) }, options: options)
  }

  /// Starts a program, by words that are bytes and need not be text, such as the path of a `FileChange`.
  ///
  /// The errors are those of ``init(_:_:options:)-(String,_,_)``.
  @_disfavoredOverload
  public init(_ program: Word, _ arguments: [Word] = [], options: Options = Options()) throws(SpawnError) {
    var plumbing = SpawnPlumbing()
    do throws(SystemError) {
      try plumbing.connect(options)
    } catch {
      throw .system(program: program.string, error)
    }
    guard options.descriptors.count <= Self.mostDescriptors else {
      throw .tooManyDescriptors(options.descriptors.count, limit: Self.mostDescriptors)
    }
    for (number, descriptor) in options.descriptors.sorted(by: { $0.key < $1.key }) {
      guard (3...65535).contains(number) else { throw .badNumber(number) }
      plumbing.pass(descriptor, as: number)
    }
    let started = try SpawnRequest(program, arguments, options).start(plumbing)
    child = .adopt(started.process, started.descriptor)
    leadsGroup = options.leadsProcessGroup || options.leadsSession || plumbing.terminal != nil
    reference = ProcessReference(child)
    terminal = WeakDescriptor(plumbing.terminal)
    standardInput = plumbing.input.map { OutputByteStream(Self.core($0), .writable) }
    standardOutput = plumbing.output.map { InputByteStream(Self.core($0), .readable) }
    standardError = plumbing.error.map { InputByteStream(Self.core($0), .readable) }
  }

  private static let mostDescriptors = 200

  private static func core(_ descriptor: OwnedDescriptor) -> ByteStreamCore {
    ByteStreamCore(.connected(ByteChannel(descriptor, .nonBlocking)), sides: 1)
  }

  /// The size of a terminal, in characters.
  public struct TerminalSize: Hashable, Sendable {
    /// The width.
    public var columns: UInt16
    /// The height.
    public var rows: UInt16

    /// Makes a size.
    public init(columns: UInt16, rows: UInt16) {
      self.columns = columns
      self.rows = rows
    }
  }

  /// Sets the size of the child's terminal, of which the foreground processes there are notified by `SIGWINCH`.
  ///
  /// - Throws: `ioctl (TIOCSWINSZ)` with `ENOTTY` if the child has no terminal of this object, or its streams are
  ///   closed.
  public func setTerminalSize(_ size: TerminalSize) throws(SystemError) {
    let descriptor = terminal.value
    defer { withExtendedLifetime(descriptor) {} }
    _ = try SystemCall.terminalResize.make {
      descriptor.map { crl_terminal_resize($0.number, size.columns, size.rows) } ?? -ENOTTY
    }
  }

  private struct WeakDescriptor: @unchecked Sendable {
    // Sendable: a weak reference that is never written again; reading one is atomic.
    weak var value: OwnedDescriptor?

    init(_ value: OwnedDescriptor?) { self.value = value }
  }

  /// Whether the child has ended, reaped or not.
  public var hasEnded: Bool { reference.hasEnded }

  /// Sends a signal.
  ///
  /// - Throws: `pidfd_send_signal`, or `kill` on a system that rejects that, with `ESRCH` if the child has been reaped,
  ///   `EINVAL` if there is no such signal.
  public func send(signal: Int32) throws(SystemError) { try reference.send(signal: signal) }

  /// The processes that a signal is sent to.
  public enum SignalTarget: Hashable, Sendable {
    /// The child alone.
    case process
    /// The process group that the child leads: the child, and what it has started, also after the child has ended.
    ///
    /// Before Linux 6.9 the group can be reached until the child has been reaped.
    case group
  }

  /// Sends a signal to the child, or to the process group that it leads.
  ///
  /// - Throws: The errors of ``send(signal:)``; `ESRCH` as well if the child leads no group.
  public func send(signal: Int32, to target: SignalTarget) throws(SystemError) {
    switch target {
    case .process: try send(signal: signal)
    case .group: try child.send(toGroup: signal)
    }
  }
}

extension SpawnedProcess: CustomDebugStringConvertible {
  /// The process's number, and whether it has ended.
  public var debugDescription: String { "<SpawnedProcess>{process = \(process), ended = \(hasEnded)}" }
}

extension ChildProcessSource {
  /// Makes a source that waits for a program that was started, and is in no mode yet.
  ///
  /// It never waits for another process, even if other code has reaped the child: how it ended is reported if a source
  /// has seen it, and is `ChildProcessError.reapedElsewhere` otherwise.
  ///
  /// - Parameters:
  ///   - spawned: The program.
  ///   - leavesStatus: Whether the child is left to be reaped by other code, which has to do so.
  ///   - handler: Called on a loop's thread, once. It is released when it has returned, or when the source is invalid.
  public convenience init(
    _ spawned: SpawnedProcess, leavesStatus: Bool = false,
    handler: @escaping @Sendable (ChildProcessSource, End) -> Void
  ) {
    self.init(spawned.child, leavesStatus: leavesStatus, endsWithLoop: false, handler)
  }
}
