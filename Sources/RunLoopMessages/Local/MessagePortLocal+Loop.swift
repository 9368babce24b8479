// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore

extension RunLoop {
  /// Adds a local port to a mode, or, for `RunLoop.Mode.common`, to every common mode.
  ///
  /// Its handler is called on this loop's thread. A port that is in the mode already stays there. Can be called from
  /// any thread.
  ///
  /// - Throws: ``MessagePortError/invalid``; ``MessagePortError/runLoop(_:)`` if the loop has ended or the process has
  ///   no descriptor left for it.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateRunLoopSource`.
  public func add(_ port: MessagePort.Local, forMode mode: Mode) throws(MessagePortError) { try port.join(self, mode) }

  /// Removes a local port from a mode.
  ///
  /// It keeps its name and connections; messages wait. Can be called from any thread.
  public func remove(_ port: MessagePort.Local, forMode mode: Mode) { port.part(self, mode) }

  /// Whether a local port is in a mode.
  ///
  /// Can be called from any thread.
  public func contains(_ port: MessagePort.Local, forMode mode: Mode) -> Bool { port.isIn(self, mode) }
}

extension SystemCall {
  /// Whether a socket that blocks would not: a listener has somebody to accept.
  static func isReadable(_ socket: MessagePort.Descriptor) -> Bool {
    (try? SystemCall.messagePoll.make { crl_message_poll(socket.number, Int16(POLLIN), 0) }) ?? 0 > 0
  }
}
