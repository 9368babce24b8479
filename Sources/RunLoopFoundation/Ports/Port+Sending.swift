// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

public import class RunLoopCore.Port

extension Port {
  /// Queues a message for a loop that runs a mode with this port, waiting for room until a date.
  ///
  /// - Parameters:
  ///   - limitDate: How long to wait for room in a full queue. The date is converted from the wall clock to the
  ///     monotonic clock at the call. A date that is not a number never arrives.
  ///   - components: The parts of the message: `Data`, `NSData`, `[UInt8]` and ports.
  ///   - receivePort: The port at which the sender expects a reply.
  ///   - headerSpaceReserved: Ignored, because a message within the process needs no header.
  /// - Returns: False if the message was not sent: the port is invalid, the queue stayed full, or a part is of an
  ///   unsupported kind, which is reported.
  ///
  /// Can be called from any thread. Data in the array is copied, as Foundation does on Linux whenever it converts
  /// `NSData` to `Data`; ``PortMessage`` and the package's own API send without copying. The corresponding Foundation
  /// method is `send(before:components:from:reserved:)`.
  @discardableResult
  public func send(
    before limitDate: Date, components: NSMutableArray?, from receivePort: Port?, reserved headerSpaceReserved: Int
  ) -> Bool {
    send(before: limitDate, msgid: 0, components: components, from: receivePort, reserved: headerSpaceReserved)
  }

  /// Queues a message with a number for a loop that runs a mode with this port, waiting for room until a date.
  ///
  /// This is the same as ``send(before:components:from:reserved:)`` with a message number, of which the lowest 32 bits
  /// are sent. The corresponding Foundation method is `send(before:msgid:components:from:reserved:)`.
  @discardableResult
  public func send(
    before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
    reserved headerSpaceReserved: Int
  ) -> Bool {
    guard let parts = Message.parts(components ?? [], Message.Component.init(value:)) else { return false }
    return send(parts, id: UInt32(truncatingIfNeeded: msgID), from: receivePort, before: limitDate)
  }

  /// Sends a message, and returns whether that succeeded.
  func send(_ parts: [Message.Component], id: UInt32, from receivePort: Port?, before limitDate: Date) -> Bool {
    let deadline = Tick.monotonicNow + Int64(saturatingSeconds: limitDate.timeIntervalSinceNow)
    do throws(PortError) {
      try send(Message(id: id, components: parts, replyPort: receivePort), deadline: deadline.instant)
      return true
    } catch {
      return false
    }
  }
}

extension Port: NSCopying {
  /// Returns the port itself.
  ///
  /// The corresponding Foundation method is `copy(with:)`.
  public func copy(with zone: NSZone? = nil) -> Any { self }
}
