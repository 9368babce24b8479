import CRunLoopSystem
public import RunLoopCore
import Synchronization

extension MessagePort {
  /// An open descriptor that belongs to this object: it is closed with it, once.
  ///
  /// Any thread.
  public final class Descriptor: Sendable, Hashable {
    private let stored: Atomic<Int32>

    /// Takes a descriptor over.
    public init(owning number: Int32) { stored = Atomic(number) }

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

    /// Gives the descriptor to the caller, who closes it; nil if it has been taken or closed.
    public func take() -> Int32? {
      let number = stored.exchange(-1, ordering: .acquiringAndReleasing)
      return number >= 0 ? number : nil
    }

    /// Closes the descriptor now.
    ///
    /// Again: nothing.
    public func close() { if let number = take() { _ = crl_close(number) } }

    /// Whether both are the same.
    public static func == (left: Descriptor, right: Descriptor) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
  }
}

extension MessagePort.Descriptor: CustomDebugStringConvertible {
  /// The descriptor's number.
  public var debugDescription: String { "<MessagePort.Descriptor \(number)>" }
}
