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

  init(_ descriptor: OwnedDescriptor) { self.descriptor = descriptor }

  /// Makes a reference of a process that exists.
  ///
  /// - Throws: `pidfd_open` with `ESRCH` if there is none of this number, with `EINVAL` for a number that no process
  ///   can have, with `EMFILE` if there is no descriptor left.
  public convenience init(process: Int32) throws(SystemError) {
    self.init(OwnedDescriptor(try SystemCall.processDescriptor.make { crl_process_open(process) }))
  }

  /// Sends a signal to the process.
  ///
  /// The corresponding system call is `pidfd_send_signal`.
  ///
  /// - Throws: `ESRCH` if the process has been reaped, `EPERM` if it may not be signalled, `EINVAL` if there is no such
  ///   signal.
  public func send(signal: Int32) throws(SystemError) {
    _ = try SystemCall.processSignal.make { crl_process_signal(descriptor.number, signal) }
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
