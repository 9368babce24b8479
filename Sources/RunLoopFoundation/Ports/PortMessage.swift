// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import class RunLoopCore.Port

/// A message between ports.
///
/// A message that is to be sent goes to ``sendPort`` and may name, as ``receivePort``, the port at which an answer is
/// expected. A message that was received arrived at ``receivePort``, and an answer to it goes to ``sendPort``.
///
/// The corresponding Foundation class is `PortMessage`.
open class PortMessage: NSObject, NSCopying {
  /// The sender's number for the kind of message.
  open var msgid: UInt32 = 0
  /// The message's parts: `NSData`, ``/RunLoopCore/Port``, or any value of a sender that used the package's own
  /// spelling.
  open private(set) var components: [AnyObject]?
  /// The port at which the message arrived, or at which an answer is expected.
  open private(set) var receivePort: Port?
  /// The port that the message goes to, or that an answer goes to.
  open private(set) var sendPort: Port?
  /// Where the message goes to or comes from, if those are ports of Foundation's own.
  package private(set) var foundationPorts: (send: Foundation.Port?, receive: Foundation.Port?)

  /// Makes a message that is to be sent.
  ///
  /// - Parameters:
  ///   - sendPort: The port that the message goes to.
  ///   - replyPort: The port at which an answer is expected.
  ///   - components: The message's parts: `NSData` and ``/RunLoopCore/Port``.
  public init(sendPort: Port?, receivePort replyPort: Port?, components: [AnyObject]?) {
    self.sendPort = sendPort
    self.receivePort = replyPort
    self.components = components
  }

  /// Makes a message between ports of Foundation's own, of which none is ours.
  ///
  /// The components are sent as Foundation sends them.
  package init(between ports: (send: Foundation.Port?, receive: Foundation.Port?), components: [AnyObject]?) {
    foundationPorts = ports
    self.components = components
  }

  /// Sends the message to ``sendPort``, and waits for room there until a date.
  ///
  /// Its parts are not copied, except mutable data.
  ///
  /// A message to one of Foundation's own ports is sent by that port.
  ///
  /// - Returns: False if it was not sent: there is no such port, or for the reasons of
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

  /// The message itself.
  public func copy(with zone: NSZone?) -> Any { self }
}

extension PortMessage {
  /// Makes a message that a port has received.
  convenience init(_ message: Port.Message, receivedAt port: Port) {
    self.init(
      sendPort: message.replyPort, receivePort: port, components: message.components.map(\.object))
    msgid = message.id
  }
}
