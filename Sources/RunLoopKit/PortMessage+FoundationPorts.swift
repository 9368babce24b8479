// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopFoundation

// Messages between ports of Foundation's own, such as socket ports.
extension RunLoopFoundation.PortMessage {
  /// Makes a message for one of Foundation's own ports to send, such as a `SocketPort`.
  ///
  /// - Parameters:
  ///   - sendPort: The port that the message goes to.
  ///   - replyPort: The port at which an answer is expected.
  ///   - components: The message's parts, in the form that the port can send.
  ///
  /// The corresponding Foundation initializer is `init(sendPort:receivePort:components:)`.
  @_disfavoredOverload
  public convenience init(
    sendPort: Foundation.Port?, receivePort replyPort: Foundation.Port?, components: [AnyObject]?
  ) {
    self.init(between: (send: sendPort, receive: replyPort), components: components)
  }

  /// The port that the message goes to, or that an answer goes to, if it is one of Foundation's own.
  ///
  /// `sendPort` is then nil. The corresponding Foundation property is `sendPort`.
  public var foundationSendPort: Foundation.Port? { foundationPorts.send }

  /// The port at which the message arrived, or at which an answer is expected, if it is one of Foundation's own.
  ///
  /// `receivePort` is then nil. The corresponding Foundation property is `receivePort`.
  public var foundationReceivePort: Foundation.Port? { foundationPorts.receive }
}
