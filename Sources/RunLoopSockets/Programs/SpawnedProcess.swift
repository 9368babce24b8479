// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
public import RunLoopSystemEvents

/// A program that was started as a child of this process.
///
/// Its descriptor (`pidfd`) is created together with it, so that a signal never reaches another process that reuses its
/// ID, whatever code reaps the child. Its standard streams can be pipes, whose other ends are ``ByteStream``s.
///
/// The child inherits only the descriptors passed to it; all others are closed. Its signals have their default actions,
/// except for those that this process ignores; `SIGPIPE` always has its default action. No signals are blocked.
///
/// When the child has ended, it has to be reaped by a `ChildProcessSource` created with
/// `init(_:leavesStatus:handler:)`, or by other code that waits for ``process``. The child continues if this object is
/// released. Can be used from any thread.
public final class SpawnedProcess: Sendable {
  /// A redirection of a standard stream of the child.
  public enum Redirection: Hashable, Sendable {
    /// The corresponding stream of this process.
    case inherited
    /// `/dev/null`.
    case null
    /// A pipe whose other end is a stream of this object.
    case pipe
    /// A descriptor of this process, which the caller still owns.
    case descriptor(Int32)
    /// For the standard error: the same destination as the standard output.
    case standardOutput
    /// A pseudo-terminal, which becomes the controlling terminal of the child and of its new session.
    ///
    /// All streams of this kind share one terminal. The child's output is read from ``standardOutput`` or, if only the
    /// standard error is a terminal, from ``standardError``. Bytes written to ``standardInput`` are typed there.
    /// Closing that stream does not end the input; write the character 4 (control-D) at the beginning of a line.
    /// Closing the last of these streams closes the terminal, which sends the child a hangup (`SIGHUP`).
    case terminal
  }

  /// A word passed to a program, which on Linux consists of bytes and need not be valid text.
  public struct Word: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The bytes, without a terminating zero.
    public let bytes: [UInt8]

    /// Creates a word from bytes.
    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a word from a text, as UTF-8.
    public init(_ text: String) { bytes = Array(text.utf8) }

    /// Creates a word from a text, as UTF-8.
    public init(stringLiteral text: String) { self.init(text) }

    /// Creates a word from a path.
    public init(_ path: FileChangeSource.Path) { bytes = path.bytes }

    /// The word as text, with replacement characters for invalid UTF-8.
    public var string: String { String(decoding: bytes, as: UTF8.self) }
  }

  /// The configuration of a program to start.
  public struct Options: Sendable {
    /// The child's environment; defaults to `nil`, which means this process's.
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
    /// The child's environment as bytes, of which ``environment`` is the text; defaults to `nil`.
    public var environmentWords: [Word: Word]?
    /// The child's working directory; defaults to `nil`, which means this process's.
    public var directory: String? {
      get { directoryWord?.string }
      set { directoryWord = newValue.map { Word($0) } }
    }
    /// The child's working directory as bytes, of which ``directory`` is the text; defaults to `nil`.
    public var directoryWord: Word?
    /// The child's standard input; defaults to ``Redirection/inherited``.
    public var standardInput = Redirection.inherited
    /// The child's standard output; defaults to ``Redirection/inherited``.
    public var standardOutput = Redirection.inherited
    /// The child's standard error; defaults to ``Redirection/inherited``.
    public var standardError = Redirection.inherited
    /// Additional descriptors to pass, keyed by their numbers in the child; defaults to none.
    ///
    /// The numbers must be from 3 to 65535, and there can be at most 200. The caller still owns the descriptors.
    public var descriptors: [Int32: Int32] = [:]
    /// The size of the terminal, if a standard stream is one; the default is 80 columns and 24 rows.
    public var terminalSize = TerminalSize(columns: 80, rows: 24)
    /// Whether the child leads a process group of its own, so that a terminal's interrupts do not reach it; the default
    /// is false.
    public var leadsProcessGroup = false
    /// Whether the child leads a session of its own, without a terminal, and thus a process group; the default is
    /// false.
    public var leadsSession = false

    /// Creates the default options.
    public init() {}
  }

  /// The process ID, which may be reused by another process after the child has been reaped.
  public var process: Int32 { child.process }
  /// A reference to the process itself.
  public let reference: ProcessReference
  /// A stream, not open yet, that writes to the child's standard input, if that is a pipe or a terminal.
  public let standardInput: OutputByteStream?
  /// A stream, not open yet, that reads the child's standard output, if that is a pipe or a terminal.
  public let standardOutput: InputByteStream?
  /// A stream, not open yet, that reads the child's standard error, if that is a pipe or terminal of its own.
  public let standardError: InputByteStream?

  let child: ChildProcess
  let leadsGroup: Bool
  /// The parent's end of the terminal, which is kept open by its streams.
  private let terminal: WeakDescriptor

  /// Starts a program, and returns once it is running.
  ///
  /// - Parameters:
  ///   - program: A path, or a name without a slash that is looked up in the directories of this process's `PATH`.
  ///   - arguments: The arguments, without the program's name.
  ///   - options: The configuration of the program.
  /// - Throws: A ``SpawnError``. In that case nothing was started, and no descriptors remain open.
  public convenience init(
    _ program: String, _ arguments: [String] = [], options: Options = Options()
  ) throws(SpawnError) {
    try self.init(Word(program), arguments.map { Word($0) }, options: options)
  }

  /// Starts a program whose words are bytes that need not be valid text, such as the path of a `FileChange`.
  ///
  /// - Throws: The errors of ``init(_:_:options:)-(String,_,_)``.
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

  /// The size of a terminal in characters.
  public struct TerminalSize: Hashable, Sendable {
    /// The number of columns.
    public var columns: UInt16
    /// The number of rows.
    public var rows: UInt16

    /// Creates a size.
    public init(columns: UInt16, rows: UInt16) {
      self.columns = columns
      self.rows = rows
    }
  }

  /// Sets the size of the child's terminal, and notifies its foreground processes by `SIGWINCH`.
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
    // Sendable: the weak reference is never written after initialization, and reading it is atomic.
    weak var value: OwnedDescriptor?

    init(_ value: OwnedDescriptor?) { self.value = value }
  }

  /// Whether the child has ended, whether or not it has been reaped.
  public var hasEnded: Bool { reference.hasEnded }

  /// Sends a signal to the child.
  ///
  /// - Throws: `pidfd_send_signal`, or `kill` on a system without it, with `ESRCH` if the child has been reaped, or
  ///   `EINVAL` if there is no such signal.
  public func send(signal: Int32) throws(SystemError) { try reference.send(signal: signal) }

  /// The processes to send a signal to.
  public enum SignalTarget: Hashable, Sendable {
    /// Only the child.
    case process
    /// The process group that the child leads: the child and the processes it has started, even after the child has
    /// ended.
    ///
    /// Before Linux 6.9, the group can only be signaled until the child has been reaped.
    case group
  }

  /// Sends a signal to the child, or to the process group that it leads.
  ///
  /// - Throws: The errors of ``send(signal:)``, and `ESRCH` if the child leads no group.
  public func send(signal: Int32, to target: SignalTarget) throws(SystemError) {
    switch target {
    case .process: try send(signal: signal)
    case .group: try child.send(toGroup: signal)
    }
  }
}

extension SpawnedProcess: CustomDebugStringConvertible {
  /// The process ID, and whether the process has ended.
  public var debugDescription: String { "<SpawnedProcess>{process = \(process), ended = \(hasEnded)}" }
}

extension ChildProcessSource {
  /// Creates a source that waits for a spawned program and is not in any mode yet.
  ///
  /// It never waits for another process, even if other code has reaped the child. In that case it reports the status
  /// that another source has seen, if there was one, and `ChildProcessError.reapedElsewhere` otherwise.
  ///
  /// - Parameters:
  ///   - spawned: The program.
  ///   - leavesStatus: Whether to leave the child for other code to reap, which must then do so.
  ///   - handler: Called once on a loop's thread. Released when it has returned, or when the source is invalidated.
  public convenience init(
    _ spawned: SpawnedProcess, leavesStatus: Bool = false,
    handler: @escaping @Sendable (ChildProcessSource, End) -> Void
  ) {
    self.init(spawned.child, leavesStatus: leavesStatus, endsWithLoop: false, handler)
  }
}
