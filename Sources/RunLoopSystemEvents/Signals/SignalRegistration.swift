// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// One source's place among those that the process's signal handler tells.
final class SignalRegistration: @unchecked Sendable {
  // Sendable: the C side synchronizes; the pointer never changes and is freed with the last reference.

  private let signal: Int32
  private let watch: OpaquePointer

  /// Begins to hear; the handler writes to the descriptor until the registration is stopped.
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

  /// Hears nothing more.
  ///
  /// If the former action cannot be put back now, the next source of the signal that goes does it.
  func stop() {
    crl_signal_watch_stop(watch)
    _ = try? SystemCall.signalAction.make { crl_signal_restore(signal) }
  }

  /// What came since this was last asked; nil: nothing.
  func take() -> SignalSource.Event? {
    var record = crl_signal_record()
    crl_signal_watch_take(watch, &record)
    guard record.count > 0 else { return nil }
    // The other causes have something else in the place of the sender.
    let isSent = [Cause.user, Cause.queue, Cause.thread, Cause.messageQueue].contains(record.code)
    let hasSender = isSent || (signal == SIGCHLD && record.code > 0)
    let hasValue = [Cause.queue, Cause.messageQueue, Cause.timer].contains(record.code)
    return SignalSource.Event(
      signal: signal, count: Int(record.count), sender: hasSender ? record.sender : nil,
      user: hasSender ? record.user : nil, value: hasValue ? record.value : nil, code: record.code)
  }

  /// Whether a signal can be waited for.
  static func accepts(_ signal: Int32) -> Bool {
    let faults = [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS]
    // The C library keeps those between the classic ones and the first of the others for itself.
    let isKnown = (1...31).contains(signal) || (__libc_current_sigrtmin()...__libc_current_sigrtmax()).contains(signal)
    return isKnown && signal != SIGKILL && signal != SIGSTOP && !faults.contains(signal)
  }

  /// `si_code` of signals that a program sends.
  private enum Cause {
    static let user: Int32 = 0
    static let queue: Int32 = -1
    static let timer: Int32 = -2
    static let messageQueue: Int32 = -3
    static let thread: Int32 = -6
  }
}
