// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

/// A reference to a process, which never refers to another process that reuses its ID.
///
/// The process's descriptor is closed when the reference is released. Can be used from any thread. The corresponding
/// system call is `pidfd_open`.
public final class ProcessReference: Sendable {
  let descriptor: OwnedDescriptor
  private let process: Int32?
  /// The child process, if it is one; keeps the ID from being reused while a signal is sent.
  private let child: ChildProcess?

  package init(_ descriptor: OwnedDescriptor, process: Int32? = nil) {
    self.descriptor = descriptor
    self.process = process
    child = nil
  }

  package init(_ child: ChildProcess) {
    descriptor = child.descriptor
    process = child.process
    self.child = child
  }

  /// Creates a reference to an existing process.
  ///
  /// - Throws: `pidfd_open` with `ESRCH` if there is no process with this ID, `EINVAL` if the ID is not valid, or
  ///   `EMFILE` if there is no descriptor left.
  public convenience init(process: Int32) throws(SystemError) {
    self.init(OwnedDescriptor(try SystemCall.processDescriptor.make { crl_process_open(process) }), process: process)
  }

  /// Sends a signal to the process.
  ///
  /// The corresponding system call is `pidfd_send_signal`. If the system rejects that call, the signal is sent to the
  /// process ID (`kill`) after a check that the process exists. The ID of a child that no other code reaps cannot be
  /// reused in between. For any other process it can, if the process ends and is reaped at that moment.
  ///
  /// - Throws: `pidfd_send_signal` or `kill` with `ESRCH` if the process has been reaped or, for `kill`, has ended;
  ///   `EPERM` if the signal is not permitted; or `EINVAL` if there is no such signal.
  public func send(signal: Int32) throws(SystemError) {
    do throws(SystemError) {
      _ = try SystemCall.processSignal.make { crl_process_signal(descriptor.number, signal) }
    } catch {
      // Both some filters and the kernel, for another user's process, return EPERM. `kill` distinguishes them.
      guard error.number == ENOSYS || error.number == EPERM, let process else { throw error }
      let rejection = error
      do throws(SystemError) {
        try kill(process, signal)
      } catch {
        throw error.number == EPERM ? rejection : error
      }
    }
  }

  private func kill(_ process: Int32, _ signal: Int32) throws(SystemError) {
    if let child { return try child.send(signal: signal) }
    guard !hasEnded else { throw SystemError(call: SystemCall.processKill.rawValue, number: ESRCH) }
    _ = try SystemCall.processKill.make { RunLoopLibC.kill(process, signal) < 0 ? -errno : 0 }
  }

  /// Whether the process has ended, whether or not it has been reaped.
  public var hasEnded: Bool {
    var entry = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) == 1
  }

  /// Calls a closure with the descriptor, which this reference owns and keeps open until the closure returns.
  public func withDescriptor<Result, Failure: Error>(
    _ body: (Int32) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    defer { withExtendedLifetime(self) {} }
    return try body(descriptor.number)
  }
}
