// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// An open descriptor that a peer has passed over a Unix socket (`SCM_RIGHTS`).
///
/// The descriptor is closed with this object unless it was taken. Closing a descriptor of another process can block
/// for as long as that process wants, as for a socket with `SO_LINGER`, so it is closed on a thread of this
/// package. Can be used from any thread.
public final class ReceivedDescriptor: Sendable, IdentityHashable {
  private let stored: Atomic<Int32>
  private let generation = ForkGeneration.current

  init(_ number: Int32) { stored = Atomic(number) }

  deinit { close() }

  /// The descriptor, which is marked close-on-exec, or -1 if it has been taken or closed.
  ///
  /// Keep a reference to this object while the number is in use.
  public var number: Int32 { stored.load(ordering: .acquiring) }

  /// Transfers ownership of the descriptor to the caller, or returns `nil` if it has already been taken or closed.
  public func take() -> Int32? {
    let number = stored.exchange(-1, ordering: .acquiringAndReleasing)
    return number >= 0 ? number : nil
  }

  /// Closes the descriptor asynchronously, unless it has been taken or closed.
  public func close() {
    guard let number = take() else { return }
    // In a forked child, this is only a copy, and closing it does not affect the open file.
    if generation.isPast { _ = crl_close(number) } else { DescriptorCloser.close(number) }
  }
}

extension ReceivedDescriptor: CustomDebugStringConvertible {
  /// The descriptor's number.
  public var debugDescription: String { "<ReceivedDescriptor \(number)>" }
}
