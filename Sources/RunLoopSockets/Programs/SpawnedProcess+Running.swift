// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
public import RunLoopSystemEvents

extension SpawnedProcess {
  /// What a program reads from its standard input.
  public enum Input: Hashable, Sendable, ExpressibleByStringLiteral {
    /// Nothing.
    case none
    /// A text, as UTF-8.
    case text(String)
    /// Bytes.
    case bytes([UInt8])

    /// Makes an input of text.
    public init(stringLiteral text: String) { self = .text(text) }

    var bytes: [UInt8]? {
      switch self {
      case .none: nil
      case .text(let text): Array(text.utf8)
      case .bytes(let bytes): bytes
      }
    }
  }

  /// The outcome of a program that was run.
  public struct Completion: Hashable, Sendable {
    /// How the program ended.
    public let status: ChildProcessSource.ExitStatus
    /// What it wrote to its standard output.
    public let output: [UInt8]
    /// What it wrote to its standard error.
    public let error: [UInt8]

    /// The output as text; bytes that are not UTF-8 become replacement characters.
    public var outputText: String { String(decoding: output, as: UTF8.self) }
    /// What was written to the standard error, as text.
    public var errorText: String { String(decoding: error, as: UTF8.self) }
    /// Whether the program ended with the code 0.
    public var isSuccess: Bool { status.isSuccess }
  }

  /// The reason why a program that was started has no completion.
  public enum RunError: Error, Hashable, Sendable {
    /// The program did not end in time and was terminated; what it wrote by then is part of the completion.
    case deadlineExceeded(Completion)
    /// The program wrote more than this to its standard output or error, and was killed.
    case outputTooLarge(limit: Int)
    /// The program could not be terminated, because it belongs to another user by now. It continues to run.
    case notPermitted(SystemError)
    /// It is not known how the program ended.
    case unknownEnd(ChildProcessError)
    /// The program's streams could not be watched, and it was killed.
    case loop(RunLoopError)
  }

  /// Runs a program to its end, and returns how it ended and what it wrote.
  ///
  /// It ends when the program has ended and its output and error are closed, by what it has started, too. A deadline,
  /// and a task that is cancelled, terminate the program as ``terminate(within:on:inModes:signal:of:onKill:)`` does,
  /// together with its process group if it leads one, as far as ``SignalTarget/group`` says; what is left of that is
  /// not waited for. A thread of the library's own serves the program's streams.
  ///
  /// - Parameters:
  ///   - program: A path, or a name without a slash, which is looked for in the directories of this process's `PATH`.
  ///   - arguments: The words after the program's name.
  ///   - input: What the program reads. It may end before it has read everything.
  ///   - directory: Where the program starts; nil means the directory of the options.
  ///   - environment: The program's environment; nil means that of the options.
  ///   - maximumOutputSize: The most bytes of the output, and of the error, which are kept in memory.
  ///   - deadline: How long the program may run; nil means indefinitely.
  ///   - grace: How long it has to end when it is asked to, before it is killed.
  ///   - options: The rest of how it is started. The standard streams are those of this call, except that the error may
  ///     be the same as the output.
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

  /// Runs a program by words that are bytes and need not be text, such as the path of a `FileChange`, as
  /// ``run(_:_:input:directory:environment:maximumOutputSize:deadline:grace:options:)`` does.
  ///
  /// By the steps of `teardown` the program is asked to end at the deadline, or when the task is cancelled; after the
  /// last step it is killed. If the signal of the first step does not exist, the program is killed at once.
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
  /// Returns the end of a program that was started as an asynchronous sequence of one element, with a loop to serve it.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - spawned: The program.
  ///   - leavesStatus: Whether the child is left to be reaped by other code, which has to do so.
  ///   - loop: A loop that runs; the sequence ends with its thread.
  ///   - mode: The mode that the loop runs in.
  /// - Throws: A `RunLoopError`.
  public static func events(
    of spawned: SpawnedProcess, leavesStatus: Bool = false, on loop: RunLoop, forMode mode: RunLoop.Mode = .common
  ) throws -> EventSequence<End> {
    try events(of: spawned.child, leavesStatus: leavesStatus, on: loop, forMode: mode)
  }
}
