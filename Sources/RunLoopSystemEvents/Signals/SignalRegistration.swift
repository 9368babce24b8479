// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The registration of a source with the process's signal handler.
final class SignalRegistration: @unchecked Sendable {
  // Sendable: the C code synchronizes access, and the pointer never changes and is freed on deinitialization.

  private let signal: Int32
  private let watch: OpaquePointer

  /// Starts the registration, so that the signal handler writes to the descriptor until it is stopped.
  init(_ signal: Int32, _ descriptor: Int32) throws(SystemError) {
    guard let watch = crl_signal_watch_create(signal, descriptor) else {
      throw SystemError(call: "malloc", number: ENOMEM)
    }
    do throws(SystemError) {
      _ = try SystemCall.signalAction.make { crl_signal_watch_start(watch) }
    } catch {
      crl_signal_watch_destroy(watch)
      throw error
    }
    self.signal = signal
    self.watch = watch
  }

  deinit {
    stop()
    crl_signal_watch_destroy(watch)
  }

  /// Stops the registration.
  ///
  /// If the previous action cannot be restored now, the next source of the signal that is stopped restores it.
  func stop() {
    crl_signal_watch_stop(watch)
    _ = try? SystemCall.signalAction.make { crl_signal_restore(signal) }
  }

  /// Returns the signals that have arrived since the last call, or `nil` if there were none.
  func take() -> SignalSource.Event? {
    var record = crl_signal_record()
    crl_signal_watch_take(watch, &record)
    guard record.count > 0 else { return nil }
    // With other causes, the sender's field contains something else.
    let isSent = [Cause.user, Cause.queue, Cause.thread, Cause.messageQueue].contains(record.code)
    let hasSender = isSent || (signal == SIGCHLD && record.code > 0)
    let hasValue = [Cause.queue, Cause.messageQueue, Cause.timer].contains(record.code)
    return SignalSource.Event(
      signal: signal, count: Int(record.count), sender: hasSender ? record.sender : nil,
      user: hasSender ? record.user : nil, value: hasValue ? record.value : nil, code: record.code)
  }

  /// Returns whether a source can handle a signal.
  static func accepts(_ signal: Int32) -> Bool {
    let faults = [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS]
    // The C library reserves the numbers between the standard signals and the first real-time signal for itself.
    let isKnown = (1...31).contains(signal) || (__libc_current_sigrtmin()...__libc_current_sigrtmax()).contains(signal)
    return isKnown && signal != SIGKILL && signal != SIGSTOP && !faults.contains(signal)
  }

  /// The values of `si_code` for signals sent by a program.
  private enum Cause {
    static let user: Int32 = 0
    static let queue: Int32 = -1
    static let timer: Int32 = -2
    static let messageQueue: Int32 = -3
    static let thread: Int32 = -6
  }
}
