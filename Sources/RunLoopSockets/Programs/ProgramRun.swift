// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

/// Runs a program until it ends, and collects its output.
final class ProgramRun: @unchecked Sendable {
  // Sendable: all variables are used only on the loop's thread.

  typealias Completion = SpawnedProcess.Completion
  private typealias Bytes = ReferenceWritableKeyPath<ProgramRun, [UInt8]>

  private static let chunk = 65_536

  private let loop = ServiceThread.loop
  private let spawned: SpawnedProcess
  private let limit: Int
  private let teardown: [SpawnedProcess.TeardownStep]
  private var input: ArraySlice<UInt8>
  private var output: [UInt8] = []
  private var error: [UInt8] = []
  /// The output streams that have not ended.
  private var reading: [InputByteStream] = []
  private var end: ChildProcessSource.End?
  /// The error for which the program was terminated.
  private var interruption: (any Error)?
  private var isTimedOut = false
  private var isCancelled = false
  private var timer: Timer?
  private var continuation: CheckedContinuation<Completion, any Error>?

  init(_ spawned: SpawnedProcess, input: [UInt8], limit: Int, teardown: [SpawnedProcess.TeardownStep]) {
    self.spawned = spawned
    self.input = input[...]
    self.limit = limit
    self.teardown = teardown
  }

  func begin(_ continuation: CheckedContinuation<Completion, any Error>, deadline: Duration?) {
    loop.perform { [self] in
      self.continuation = continuation
      do {
        try loop.add(ChildProcessSource(spawned) { [self] _, end in ended(end) }, forMode: .default)
        try read(spawned.standardOutput, \.output)
        try read(spawned.standardError, \.error)
        if let stream = spawned.standardInput {
          stream.handler = { [self] _, event in write(stream, event) }
          try stream.schedule(in: loop, forMode: .default)
          stream.open()
        }
      } catch {
        let reason: any Error =
          if let error = error as? RunLoopError { SpawnedProcess.RunError.loop(error) } else { error }
        interrupt(by: reason, kills: true)
        pollEnd()
      }
      if let deadline {
        let timer = Timer(deadline: loop.instant(after: deadline)) { [self] _ in
          interrupt(by: nil, kills: false)
        }
        self.timer = timer
        loop.add(timer, forMode: .default)
      }
      if isCancelled { interrupt(by: CancellationError(), kills: false) }
    }
  }

  func cancel() {
    loop.perform { [self] in
      // The task may be cancelled before it has started to wait.
      guard continuation != nil else { return isCancelled = true }
      interrupt(by: CancellationError(), kills: false)
    }
  }

  /// Polls for the end of the program, because the loop could not watch its descriptor.
  private func pollEnd() {
    _ = loop.schedule(in: .milliseconds(10), repeating: .milliseconds(10)) { [self] timer in
      guard end == nil else { return timer.invalidate() }
      guard let end = spawned.child.awaitEnd(leavesStatus: false) else { return }
      timer.invalidate()
      ended(end)
    }
  }

  /// Terminates the program for an error or, without one, for the deadline; only the first reason counts.
  private func interrupt(by error: (any Error)?, kills: Bool) {
    guard continuation != nil, interruption == nil, !isTimedOut else { return }
    interruption = error
    isTimedOut = error == nil
    if end != nil {
      // Other programs of its process group may still hold the output. ESRCH means that there are none.
      if spawned.leadsGroup { try? terminate(by: kills ? [] : teardown) }
      return finish()
    }
    do throws(SystemError) {
      try terminate(by: kills ? [] : teardown)
    } catch {
      // The program now runs as another user, for example with sudo, and continues. Its source reaps it.
      interruption = SpawnedProcess.RunError.notPermitted(error)
      finish()
    }
  }

  /// Terminates the program by the given steps, or kills it if the first signal does not exist.
  private func terminate(by steps: [SpawnedProcess.TeardownStep]) throws(SystemError) {
    do throws(SystemError) {
      try spawned.tearDown(by: steps, on: loop)
    } catch {
      guard error.number != EPERM, !steps.isEmpty else { throw error }
      try spawned.tearDown(by: [], on: loop)
    }
  }

  private func ended(_ end: ChildProcessSource.End) {
    guard self.end == nil else { return }
    self.end = end
    if reading.isEmpty || interruption != nil || isTimedOut { finish() }
  }

  private func finish() {
    guard let continuation, end != nil || interruption != nil else { return }
    self.continuation = nil
    timer?.invalidate()
    // Read what was written before the end. After a deadline, read once, because other writers may never stop.
    if interruption == nil {
      for stream in reading {
        let bytes: Bytes = stream === spawned.standardOutput ? \.output : \.error
        if isTimedOut { takeSome(from: stream, bytes) } else { take(from: stream, bytes) }
      }
    }
    for stream in reading { stream.close() }
    reading = []
    spawned.standardInput?.close()
    if let interruption { return continuation.resume(throwing: interruption) }
    switch end {
    case nil: break
    case .ended(let status):
      let completion = Completion(status: status, output: output, error: error)
      if isTimedOut {
        continuation.resume(throwing: SpawnedProcess.RunError.deadlineExceeded(completion))
      } else {
        continuation.resume(returning: completion)
      }
    case .unknown(let error): continuation.resume(throwing: SpawnedProcess.RunError.unknownEnd(error))
    }
  }
}

// MARK: - Streams

extension ProgramRun {
  private func read(_ stream: InputByteStream?, _ bytes: any Bytes & Sendable) throws {
    guard let stream else { return }
    reading.append(stream)
    stream.handler = { [self] _, event in
      switch event {
      case .hasBytesAvailable: takeSome(from: stream, bytes)
      case .endEncountered, .errorOccurred:
        stream.close()
        reading.removeAll { $0 === stream }
        if reading.isEmpty, end != nil { finish() }
      case .openCompleted, .canAcceptBytes: break
      }
    }
    try stream.schedule(in: loop, forMode: .default)
    stream.open()
  }

  /// Reads once, or returns false if nothing is available.
  @discardableResult
  private func takeSome(from stream: InputByteStream, _ bytes: Bytes) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 1) { buffer in
      guard let count = (try? stream.read(into: buffer)) ?? nil, count > 0 else { return false }
      guard self[keyPath: bytes].count + count <= limit else {
        let reason = SpawnedProcess.RunError.outputTooLarge(limit: limit)
        // If this happens while the rest is being read, the program has already ended.
        if continuation == nil { interruption = reason } else { interrupt(by: reason, kills: true) }
        return false
      }
      self[keyPath: bytes].append(contentsOf: buffer[..<count])
      return true
    }
  }

  private func take(from stream: InputByteStream, _ bytes: Bytes) { while takeSome(from: stream, bytes) {} }

  private func write(_ stream: OutputByteStream, _ event: ByteStream.Event) {
    switch event {
    case .canAcceptBytes:
      let count = input.withUnsafeBytes { bytes in (try? stream.write(bytes)) ?? nil }
      input = input.dropFirst(count ?? 0)
      if input.isEmpty { stream.close() }
    // The program may end or close its input before it has read everything.
    case .errorOccurred, .endEncountered: stream.close()
    case .openCompleted, .hasBytesAvailable: break
    }
  }
}
