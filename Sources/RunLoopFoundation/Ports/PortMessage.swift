// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import class RunLoopCore.Port

/// A message between ports.
///
/// A message to be sent goes to ``sendPort``, and may specify a ``receivePort`` for replies. A received message
/// arrived at ``receivePort``, and replies to it go to ``sendPort``.
///
/// The corresponding Foundation class is `PortMessage`.
open class PortMessage: NSObject, NSCopying {
  /// The sender's number for the kind of message; the default is 0.
  open var msgid: UInt32 = 0
  /// The parts of the message: `NSData`, ``/RunLoopCore/Port``, or any value if the sender used the package's own API.
  open private(set) var components: [AnyObject]?
  /// The port at which the message arrived, or at which a reply is expected.
  open private(set) var receivePort: Port?
  /// The port that the message, or a reply to it, is sent to.
  open private(set) var sendPort: Port?
  /// The ports of the message if they are Foundation's own ports.
  package private(set) var foundationPorts: (send: Foundation.Port?, receive: Foundation.Port?)

  /// Creates a message to send.
  ///
  /// - Parameters:
  ///   - sendPort: The port to send the message to.
  ///   - replyPort: The port at which a reply is expected.
  ///   - components: The parts of the message: `NSData` and ``/RunLoopCore/Port``.
  public init(sendPort: Port?, receivePort replyPort: Port?, components: [AnyObject]?) {
    self.sendPort = sendPort
    self.receivePort = replyPort
    self.components = components
  }

  /// Creates a message between Foundation's own ports.
  ///
  /// The components are sent in the same way as by Foundation.
  package init(between ports: (send: Foundation.Port?, receive: Foundation.Port?), components: [AnyObject]?) {
    foundationPorts = ports
    self.components = components
  }

  /// Sends the message to ``sendPort``, waiting for room until a date.
  ///
  /// The parts are not copied, except for mutable data. A message to one of Foundation's own ports is sent by that
  /// port.
  ///
  /// - Returns: False if the message was not sent, either because there is no ``sendPort`` or for the reasons given in
  ///   ``RunLoopCore/Port/send(before:msgid:components:from:reserved:)``.
  ///
  /// The corresponding Foundation method is `send(before:)`.
  @discardableResult
  open func send(before date: Date) -> Bool {
    if let port = foundationPorts.send {
      return port.send(
        before: date, msgid: Int(msgid), components: NSMutableArray(array: components ?? []),
        from: foundationPorts.receive, reserved: port.reservedSpaceLength)
    }
    guard let sendPort, let parts = Port.Message.parts(components ?? [], Port.Message.Component.init(object:)) else {
      return false
    }
    return sendPort.send(parts, id: msgid, from: receivePort, before: date)
  }

  /// Returns the message itself.
  public func copy(with zone: NSZone?) -> Any { self }
}

extension PortMessage {
  convenience init(_ message: Port.Message, receivedAt port: Port) {
    self.init(
      sendPort: message.replyPort, receivePort: port, components: message.components.map(\.object))
    msgid = message.id
  }
}
