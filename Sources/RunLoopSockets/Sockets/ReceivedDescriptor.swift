// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// An open descriptor that a peer has passed over a Unix socket (`SCM_RIGHTS`), closed with this object unless it was
/// taken.
///
/// Closing a descriptor of another process can take as long as that process likes, as for a socket with `SO_LINGER`. So
/// a thread of the package's own closes it. Can be used from any thread.
public final class ReceivedDescriptor: Sendable, IdentityHashable {
  private let stored: Atomic<Int32>
  private let generation = ForkGeneration.current

  init(_ number: Int32) { stored = Atomic(number) }

  deinit { close() }

  /// The descriptor, which is closed on exec, or -1 when it has been taken or closed.
  ///
  /// Keep this object while the number is in use.
  public var number: Int32 { stored.load(ordering: .acquiring) }

  /// Hands the descriptor to the caller, who closes it; nil if it has been taken or closed.
  public func take() -> Int32? {
    let number = stored.exchange(-1, ordering: .acquiringAndReleasing)
    return number >= 0 ? number : nil
  }

  /// Closes the descriptor soon, unless it has been taken or closed.
  public func close() {
    guard let number = take() else { return }
    // A child of a fork has copies: closing them ends nothing.
    if generation.isPast { _ = crl_close(number) } else { DescriptorCloser.close(number) }
  }
}

extension ReceivedDescriptor: CustomDebugStringConvertible {
  /// The descriptor's number.
  public var debugDescription: String { "<ReceivedDescriptor \(number)>" }
}
