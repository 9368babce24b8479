// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

extension MessagePort.Local: RunLoopItem {
  /// Adds the port to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// The handler is called on the threads of the port's loops. While the port is in no mode, it keeps its name and
  /// connections, and messages wait.
  ///
  /// - Throws: ``MessagePortError/invalid``, or ``MessagePortError/runLoop(_:)`` if the loop has ended or the process
  ///   has no descriptor left for it.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateRunLoopSource`.
  public func respond(to request: RunLoop.ItemRequest) throws(MessagePortError) -> Bool { try carryOut(request) }
}

extension SystemCall {
  /// Returns whether an operation on a blocking socket would not block, for example because a connection is waiting.
  static func isReadable(_ socket: MessagePort.Descriptor) -> Bool {
    (try? SystemCall.messagePoll.make { crl_message_poll(socket.number, Int16(POLLIN), 0) }) ?? 0 > 0
  }
}
