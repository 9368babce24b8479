// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore
import Synchronization

extension MessagePort {
  /// An open descriptor that is owned by this object and closed with it.
  ///
  /// Closing a descriptor that another process has sent can block for as long as that process wants, for example a
  /// socket with `SO_LINGER` or a file of a slow file system. Descriptors that arrived in a message and were not taken
  /// with ``take()`` are therefore closed on a thread of this package, in the order in which they are released. Can be
  /// used from any thread.
  public final class Descriptor: Sendable, IdentityHashable {
    private let stored: Atomic<Int32>
    private let closing: Closing
    private let generation = ForkGeneration.current
    /// The charge for the descriptor, retained until the descriptor is taken or closed.
    private let charge = Atomic<Unmanaged<MessageCharge>?>(nil)

    /// Takes over a descriptor, which is closed on the thread that releases this object.
    public convenience init(owning number: Int32) { self.init(owning: number, .here) }

    init(owning number: Int32, _ closing: Closing) {
      stored = Atomic(number)
      self.closing = closing
    }

    /// Duplicates a descriptor, and marks the copy close-on-exec.
    ///
    /// - Throws: The error of `fcntl`: `EBADF` or `EMFILE`.
    public convenience init(duplicating number: Int32) throws(SystemError) {
      self.init(owning: try SystemCall.duplicate.make { crl_message_duplicate(number) })
    }

    deinit { close() }

    /// The descriptor, or -1 if it has been taken or closed.
    ///
    /// Keep a reference to this object while the number is in use.
    public var number: Int32 { stored.load(ordering: .acquiring) }

    /// Transfers ownership of the descriptor to the caller, or returns `nil` if it has already been taken or closed.
    public func take() -> Int32? {
      takeCharge()
      return takeNumber()
    }

    private func takeNumber() -> Int32? {
      let number = stored.exchange(-1, ordering: .acquiringAndReleasing)
      return number >= 0 ? number : nil
    }

    /// Attaches a charge, which is released when the descriptor is taken or has been closed.
    func charge(_ charge: MessageCharge) {
      self.charge.store(Unmanaged.passRetained(charge), ordering: .releasing)
    }

    /// Moves the descriptor and its charge to an object that closes it on the thread that releases it.
    ///
    /// Use this only for descriptors that are known not to block when they are closed.
    func moved() -> Descriptor? {
      let charge = takeCharge()
      guard let number = takeNumber() else { return nil }
      let descriptor = Descriptor(owning: number)
      if let charge { descriptor.charge(charge) }
      return descriptor
    }

    @discardableResult
    private func takeCharge() -> MessageCharge? {
      charge.exchange(nil, ordering: .acquiringAndReleasing)?.takeRetainedValue()
    }

    /// Closes the descriptor, unless it has been taken or closed.
    ///
    /// A descriptor that arrived in a message is closed asynchronously on another thread; any other is closed when the
    /// call returns.
    public func close() {
      let charge = takeCharge()
      guard let number = takeNumber() else { return }
      // In a forked child, this is only a copy, and closing it does not affect the open file.
      guard !generation.isPast else { return _ = crl_close(number) }
      closing.close(number, charge)
    }
  }
}

extension MessagePort.Descriptor: CustomDebugStringConvertible {
  /// The descriptor's number.
  public var debugDescription: String { "<MessagePort.Descriptor \(number)>" }
}
