// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopFoundation

// Messages between Foundation's own ports, such as socket ports.
extension RunLoopFoundation.PortMessage {
  /// Creates a message that one of Foundation's own ports sends, such as a `SocketPort`.
  ///
  /// - Parameters:
  ///   - sendPort: The port that receives the message.
  ///   - replyPort: The port that receives a reply.
  ///   - components: The parts of the message, in a form that the port can send.
  ///
  /// The corresponding Foundation initializer is `init(sendPort:receivePort:components:)`.
  @_disfavoredOverload
  public convenience init(
    sendPort: Foundation.Port?, receivePort replyPort: Foundation.Port?, components: [AnyObject]?
  ) {
    self.init(between: (send: sendPort, receive: replyPort), components: components)
  }

  /// The port that receives the message, or that receives replies, if it is one of Foundation's own.
  ///
  /// If it is not nil, `sendPort` is nil. The corresponding Foundation property is `sendPort`.
  public var foundationSendPort: Foundation.Port? { foundationPorts.send }

  /// The port at which the message arrived, or at which a reply is expected, if it is one of Foundation's own.
  ///
  /// If it is not nil, `receivePort` is nil. The corresponding Foundation property is `receivePort`.
  public var foundationReceivePort: Foundation.Port? { foundationPorts.receive }
}
