// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Descriptor {
  /// The way in which a descriptor is closed.
  enum Closing: Sendable {
    /// On the current thread, because it is known that closing does not block.
    case here
    /// On the closing thread, because another process determines how long it takes.
    case apart
    /// A connection, which is shut down, and closed on the closing thread if packets left in it contain descriptors.
    ///
    /// The kernel closes those on the thread that closes the socket.
    case connection
    /// A listening socket, which is handled like a connection because of its unaccepted connections.
    case listener

    /// Closes a descriptor, possibly asynchronously, and keeps its charge until then.
    func close(_ number: Int32, _ charge: MessageCharge? = nil) {
      defer { withExtendedLifetime(charge) {} }
      switch self {
      case .here: _ = crl_close(number)
      case .apart: DescriptorCloser.close(number, on: charge?.closer, keeping: charge)
      case .connection: Self.closeConnection(number, charge)
      case .listener: Self.closeListener(number)
      }
    }

    private static func closeConnection(_ number: Int32, _ charge: MessageCharge?) {
      if drain(number) { return _ = crl_close(number) }
      DescriptorCloser.close(number, on: charge?.closer, keeping: charge)
    }

    /// The maximum number of packets to drop here, which is more than an unprivileged sender can have in a socket.
    private static let packets: Int32 = 1024

    /// Shuts a connection down, drops the packets in it that have no descriptors, and returns whether closing it will
    /// not block.
    static func drain(_ number: Int32) -> Bool {
      // No packet arrives after this.
      _ = crl_message_shut_down(number)
      return crl_message_drain(number, packets) > 0
    }

    private static func closeListener(_ number: Int32) {
      // No process can connect after this, and blocked calls return.
      _ = crl_message_shut_down(number)
      let connection = crl_accept(number)
      guard connection != -crl_message_no_connection else { return _ = crl_close(number) }
      if connection >= 0 { DescriptorCloser.close(connection) }
      DescriptorCloser.close(number)
    }
  }
}
