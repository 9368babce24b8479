// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
public import RunLoopSystemEvents

extension SpawnedProcess {
  /// The standard input of a program.
  public enum Input: Hashable, Sendable, ExpressibleByStringLiteral {
    /// No input.
    case none
    /// A text, as UTF-8.
    case text(String)
    /// Raw bytes.
    case bytes([UInt8])

    /// Creates an input from a text.
    public init(stringLiteral text: String) { self = .text(text) }

    var bytes: [UInt8]? {
      switch self {
      case .none: nil
      case .text(let text): Array(text.utf8)
      case .bytes(let bytes): bytes
      }
    }
  }

  /// The outcome of a program.
  public struct Completion: Hashable, Sendable {
    /// How the program ended.
    public let status: ChildProcessSource.ExitStatus
    /// The bytes that the program wrote to its standard output.
    public let output: [UInt8]
    /// The bytes that the program wrote to its standard error.
    public let error: [UInt8]

    /// The standard output as text, with replacement characters for invalid UTF-8.
    public var outputText: String { String(decoding: output, as: UTF8.self) }
    /// The standard error as text, with replacement characters for invalid UTF-8.
    public var errorText: String { String(decoding: error, as: UTF8.self) }
    /// Whether the program exited with status 0.
    public var isSuccess: Bool { status.isSuccess }
  }

  /// An error of running a program that was started.
  public enum RunError: Error, Hashable, Sendable {
    /// The program did not end in time and was terminated. The completion contains its output until then.
    case deadlineExceeded(Completion)
    /// The program wrote more bytes than the limit to its standard output or error, and was killed.
    case outputTooLarge(limit: Int)
    /// The program could not be terminated because it now belongs to another user. It continues to run.
    case notPermitted(SystemError)
    /// The program's exit status could not be determined.
    case unknownEnd(ChildProcessError)
    /// The program's streams could not be watched, and the program was killed.
    case loop(RunLoopError)
  }

  /// Runs a program until it ends, and returns its exit status and output.
  ///
  /// This method returns when the program has ended and its output and error are closed, including by processes that
  /// it has started. At the deadline, or if the task is cancelled, the program is terminated as by
  /// ``terminate(within:on:inModes:signal:of:onKill:)``, together with its process group if it leads one and as far as
  /// ``SignalTarget/group`` permits. The rest of the group is not waited for. A thread of this library serves the
  /// program's streams.
  ///
  /// - Parameters:
  ///   - program: A path, or a name without a slash that is looked up in the directories of this process's `PATH`.
  ///   - arguments: The arguments, without the program's name.
  ///   - input: The program's standard input. The program may end before it has read everything.
  ///   - directory: The working directory of the program. Defaults to `nil`, which means that of the options.
  ///   - environment: The program's environment. Defaults to `nil`, which means that of the options.
  ///   - maximumOutputSize: The maximum number of bytes kept of the output and of the error, each. The default is 16
  ///     MiB.
  ///   - deadline: The time that the program may run. Defaults to `nil`, which sets no limit.
  ///   - grace: The time between the request to end and the kill. The default is 2 seconds.
  ///   - options: Other options. The standard streams are set by this method, except that the error may be redirected
  ///     to the output.
  /// - Throws: A ``SpawnError``, a ``RunError``, or `CancellationError`.
  public static func run(
    _ program: String, _ arguments: [String] = [], input: Input = .none, directory: String? = nil,
    environment: [String: String]? = nil, maximumOutputSize: Int = 16 << 20, deadline: Duration? = nil,
    grace: Duration = .seconds(2), options: Options = Options()
  ) async throws -> Completion {
    var options = options
    if let directory { options.directory = directory }
    if let environment { options.environment = environment }
    return try await run(
      Word(program), arguments.map { Word($0) }, input: input, maximumOutputSize: maximumOutputSize, deadline: deadline,
      teardown: [.terminate(within: grace)], options: options)
  }

  /// Runs a program whose words are bytes that need not be valid text, such as the path of a `FileChange`, as
  /// ``run(_:_:input:directory:environment:maximumOutputSize:deadline:grace:options:)`` does.
  ///
  /// At the deadline, or if the task is cancelled, the program is asked to end by the steps of `teardown` and killed
  /// after the last one. If the signal of the first step does not exist, the program is killed at once.
  @_disfavoredOverload
  public static func run(
    _ program: Word, _ arguments: [Word] = [], input: Input = .none, maximumOutputSize: Int = 16 << 20,
    deadline: Duration? = nil, teardown: [TeardownStep] = [.terminate(within: .seconds(2))],
    options: Options = Options()
  ) async throws -> Completion {
    var options = options
    let bytes = input.bytes
    options.standardInput = bytes == nil ? .null : .pipe
    options.standardOutput = .pipe
    if options.standardError != .standardOutput { options.standardError = .pipe }
    try Task.checkCancellation()
    let run = ProgramRun(
      try SpawnedProcess(program, arguments, options: options), input: bytes ?? [], limit: maximumOutputSize,
      teardown: teardown)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { run.begin($0, deadline: deadline) }
    } onCancel: {
      run.cancel()
    }
  }
}

extension SpawnedProcess.RunError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .deadlineExceeded(let completion): "the program did not end in time: it \(completion.status)"
    case .outputTooLarge(let limit): "the program wrote more than \(limit) bytes"
    case .notPermitted(let error): "the program cannot be terminated: \(error)"
    case .unknownEnd(let error): "\(error)"
    case .loop(let error): "the program cannot be waited for: \(error)"
    }
  }
}

extension ChildProcessSource {
  /// Returns the end of a started program as an asynchronous sequence of one element, served by a loop.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - spawned: The program.
  ///   - leavesStatus: Whether to leave the child for other code to reap, which must then do so.
  ///   - loop: A running loop. The sequence ends with its thread.
  ///   - mode: A mode that the loop runs in.
  /// - Throws: A `RunLoopError`.
  public static func events(
    of spawned: SpawnedProcess, leavesStatus: Bool = false, on loop: RunLoop, forMode mode: RunLoop.Mode = .common
  ) throws -> EventSequence<End> {
    try events(of: spawned.child, leavesStatus: leavesStatus, on: loop, forMode: mode)
  }
}
