// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopFoundation

// Messages between ports of Foundation's own, such as socket ports.
extension RunLoopFoundation.PortMessage {
  /// Makes a message that one of Foundation's own ports is to send, such as a `SocketPort`.
  ///
  /// - Parameters:
  ///   - sendPort: Where it goes to.
  ///   - replyPort: Where an answer is taken.
  ///   - components: Its parts, as the port can send them.
  ///
  /// The corresponding Foundation initializer is `init(sendPort:receivePort:components:)`.
  @_disfavoredOverload
  public convenience init(
    sendPort: Foundation.Port?, receivePort replyPort: Foundation.Port?, components: [AnyObject]?
  ) {
    self.init(between: (send: sendPort, receive: replyPort), components: components)
  }

  /// Where the message goes to, or where an answer goes to, if that is a port of Foundation's own.
  ///
  /// `sendPort` is nil then. The corresponding Foundation property is `sendPort`.
  public var foundationSendPort: Foundation.Port? { foundationPorts.send }

  /// Where the message came to, or where an answer is taken, if that is a port of Foundation's own.
  ///
  /// `receivePort` is nil then. The corresponding Foundation property is `receivePort`.
  public var foundationReceivePort: Foundation.Port? { foundationPorts.receive }
}
