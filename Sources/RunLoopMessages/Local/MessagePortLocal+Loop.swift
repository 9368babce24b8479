// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

extension MessagePort.Local: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// Its handler is called on the threads of its loops. While it is in no mode it keeps its name and connections, and
  /// messages wait.
  ///
  /// - Throws: ``MessagePortError/invalid``; ``MessagePortError/runLoop(_:)`` if the loop has ended or the process has
  ///   no descriptor left for it.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateRunLoopSource`.
  public func respond(to request: RunLoop.ItemRequest) throws(MessagePortError) -> Bool { try carryOut(request) }
}

extension SystemCall {
  /// Whether a socket that blocks would not: a listener has somebody to accept.
  static func isReadable(_ socket: MessagePort.Descriptor) -> Bool {
    (try? SystemCall.messagePoll.make { crl_message_poll(socket.number, Int16(POLLIN), 0) }) ?? 0 > 0
  }
}
