// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore

extension MessagePort.Descriptor {
  /// Where a descriptor is closed.
  enum Closing: Sendable {
    /// By whoever gives it up: it is known what closing does.
    case here
    /// By the closing thread: another process decides how long that takes.
    case apart
    /// A connection, which is shut down: by the closing thread if there are packets left in it.
    ///
    /// The kernel closes the descriptors in them as part of closing the socket, on the same thread.
    case connection
    /// A listening socket: the same for the connections that nobody has taken.
    case listener

    /// Closes a descriptor, or has it closed.
    func close(_ number: Int32, _ charge: MessageCharge? = nil) {
      switch self {
      case .here: _ = crl_close(number)
      case .apart: DescriptorCloser.close(number, charge)
      case .connection: Self.closeConnection(number, charge)
      case .listener: Self.closeListener(number)
      }
    }

    private static func closeConnection(_ number: Int32, _ charge: MessageCharge?) {
      // No packet arrives after this.
      _ = crl_message_shut_down(number)
      if crl_message_is_drained(number) > 0 {
        _ = crl_close(number)
      } else {
        DescriptorCloser.close(number, charge)
      }
    }

    private static func closeListener(_ number: Int32) {
      // Nobody connects after this, and no call waits for somebody.
      _ = crl_message_shut_down(number)
      let connection = crl_accept(number)
      guard connection != -crl_message_no_connection else { return _ = crl_close(number) }
      if connection >= 0 { DescriptorCloser.close(connection) }
      DescriptorCloser.close(number)
    }
  }
}

/// The thread that closes what others have sent, made when there is something to close, and ended when there is nothing left.
///
/// What waits for it are open descriptors, of which a process has a limited number, and each sender still fewer. A child of a
/// fork has a closer of its own.
final class DescriptorCloser: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  private static let ours = PerProcess { DescriptorCloser() }

  private let lock = Lock()
  private var waiting: [(number: Int32, charge: MessageCharge?)] = []
  private var isRunning = false

  /// Has a descriptor closed; it does not wait, unless no thread can be made.
  ///
  /// - Parameter charge: Released when it has been closed.
  static func close(_ number: Int32, _ charge: MessageCharge? = nil) { ours.value.close(number, charge) }

  /// Whether there is nothing to close and no thread, for tests.
  static var isIdle: Bool { ours.value.lock.withLock { !ours.value.isRunning } }

  private func close(_ number: Int32, _ charge: MessageCharge?) {
    lock.lock()
    waiting.append((number, charge))
    let needsThread = !isRunning
    isRunning = true
    lock.unlock()
    guard needsThread else { return }
    do throws(SystemError) {
      let context = Unmanaged.passUnretained(self).toOpaque()
      _ = try SystemCall.threadCreate.make { crl_thread_create(0, Self.work, context) }
    } catch {
      // Late is better than never.
      closeAll()
    }
  }

  private static let work: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    // The closer lives as long as the process.
    if let context { Unmanaged<DescriptorCloser>.fromOpaque(context).takeUnretainedValue().closeAll() }
    return nil
  }

  /// Closes what there is, until there is nothing.
  private func closeAll() {
    while true {
      lock.lock()
      let descriptors = waiting
      waiting = []
      if descriptors.isEmpty { isRunning = false }
      lock.unlock()
      guard !descriptors.isEmpty else { return }
      for (number, charge) in descriptors {
        _ = crl_close(number)
        withExtendedLifetime(charge) {}
      }
    }
  }
}
