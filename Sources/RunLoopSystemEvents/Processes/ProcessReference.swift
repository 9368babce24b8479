// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

/// A process, and never another one that reuses its number later.
///
/// It has a descriptor of the process, which is closed with the last reference to it. Can be used from any thread. The
/// corresponding system call is `pidfd_open`.
public final class ProcessReference: Sendable {
  let descriptor: OwnedDescriptor
  /// The number of the process, where it is known.
  private let process: Int32?
  /// The child that the process is, which keeps its number from being reused while a signal is sent.
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

  /// Makes a reference of a process that exists.
  ///
  /// - Throws: `pidfd_open` with `ESRCH` if there is none of this number, with `EINVAL` for a number that no process
  ///   can have, with `EMFILE` if there is no descriptor left.
  public convenience init(process: Int32) throws(SystemError) {
    self.init(OwnedDescriptor(try SystemCall.processDescriptor.make { crl_process_open(process) }), process: process)
  }

  /// Sends a signal to the process.
  ///
  /// The corresponding system call is `pidfd_send_signal`. Where a system rejects that call, the signal is sent by the
  /// process's number (`kill`), after a look whether the process exists. For a child that no other code reaps the
  /// number cannot change meanwhile; for any other process it could, if the process ended and was reaped in that
  /// moment.
  ///
  /// - Throws: `pidfd_send_signal`, or `kill`, with `ESRCH` if the process has been reaped or, with `kill`, has ended;
  ///   with `EPERM` if it may not be signalled; with `EINVAL` if there is no such signal.
  public func send(signal: Int32) throws(SystemError) {
    do throws(SystemError) {
      _ = try SystemCall.processSignal.make { crl_process_signal(descriptor.number, signal) }
    } catch {
      // EPERM is the answer of some filters, and that of the kernel for another user's process: `kill` knows.
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

  /// Whether the process has ended, reaped or not.
  public var hasEnded: Bool {
    var entry = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) == 1
  }

  /// Calls a closure with the descriptor, which stays open until it returns, and belongs to this reference.
  public func withDescriptor<Result, Failure: Error>(
    _ body: (Int32) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    defer { withExtendedLifetime(self) {} }
    return try body(descriptor.number)
  }
}
