// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore
import Synchronization

extension MessagePort {
  /// An open descriptor that belongs to this object: it is closed with it, once.
  ///
  /// Closing a descriptor that another process has sent can take as long as that process likes: a socket with
  /// `SO_LINGER`, a file of a slow file system. So those that arrived in a message, and that nobody has taken with
  /// ``take()``, are closed by a thread of the package's own, in the order in which they are given up. Can be used from
  /// any thread.
  public final class Descriptor: Sendable, IdentityHashable {
    private let stored: Atomic<Int32>
    private let closing: Closing
    private let generation = ForkGeneration.current
    /// What the descriptor is charged with, retained, until it is taken or has been closed.
    private let charge = Atomic<Unmanaged<MessageCharge>?>(nil)

    /// Takes a descriptor over, which is closed where this object is released.
    public convenience init(owning number: Int32) { self.init(owning: number, .here) }

    init(owning number: Int32, _ closing: Closing) {
      stored = Atomic(number)
      self.closing = closing
    }

    /// Makes a second descriptor of an open file, which is closed on exec.
    ///
    /// - Throws: The error of `fcntl`: `EBADF`, `EMFILE`.
    public convenience init(duplicating number: Int32) throws(SystemError) {
      self.init(owning: try SystemCall.duplicate.make { crl_message_duplicate(number) })
    }

    deinit { close() }

    /// The descriptor, or -1 when it has been taken or closed.
    ///
    /// Keep this object while the number is in use.
    public var number: Int32 { stored.load(ordering: .acquiring) }

    /// Hands the descriptor to the caller, who closes it; nil if it has been taken or closed.
    public func take() -> Int32? {
      takeCharge()
      return takeNumber()
    }

    private func takeNumber() -> Int32? {
      let number = stored.exchange(-1, ordering: .acquiringAndReleasing)
      return number >= 0 ? number : nil
    }

    /// Has the descriptor pay for itself: the charge is released when it has been closed, or is taken.
    func charge(_ charge: MessageCharge) {
      self.charge.store(Unmanaged.passRetained(charge), ordering: .releasing)
    }

    /// Gives the descriptor and its charge to another object, which closes it where it is released.
    ///
    /// For descriptors of which it is known what closing them does.
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
    /// A descriptor that arrived in a message is closed soon, by another thread; any other is closed when the call
    /// returns.
    public func close() {
      let charge = takeCharge()
      guard let number = takeNumber() else { return }
      // What a child of a fork has are copies: closing them ends nothing.
      guard !generation.isPast else { return _ = crl_close(number) }
      closing.close(number, charge)
    }
  }
}

extension MessagePort.Descriptor: CustomDebugStringConvertible {
  /// The descriptor's number.
  public var debugDescription: String { "<MessagePort.Descriptor \(number)>" }
}
