// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Descriptor {
  /// Where a descriptor is closed.
  enum Closing: Sendable {
    /// By whoever gives it up: it is known what closing does.
    case here
    /// By the closing thread: another process decides how long that takes.
    case apart
    /// A connection, which is shut down: by the closing thread if there are descriptors in the packets left in it.
    ///
    /// The kernel closes them as part of closing the socket, on the same thread.
    case connection
    /// A listening socket: the same for the connections that nobody has taken.
    case listener

    /// Closes a descriptor, or has it closed; it pays until then.
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

    /// The most packets that are dropped here: more than a sender without privileges can have in a socket.
    private static let packets: Int32 = 1024

    /// Shuts a connection down and drops the packets in it that have no descriptors; whether it closes without waiting.
    static func drain(_ number: Int32) -> Bool {
      // No packet arrives after this.
      _ = crl_message_shut_down(number)
      return crl_message_drain(number, packets) > 0
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
