// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

public import class RunLoopCore.Port

extension Port {
  /// Queues a message for a loop that has this port in a mode that it runs, and waits for room until a date.
  ///
  /// - Parameters:
  ///   - limitDate: Until when to wait for room in a full queue, by the wall clock as it is at the call, which makes it
  ///     a date of the monotonic clock. A date that is not a number never arrives.
  ///   - components: The message's parts: `Data`, `NSData`, `[UInt8]` and ports.
  ///   - receivePort: The port at which the sender expects an answer.
  ///   - headerSpaceReserved: Without meaning: a message within the process needs no header.
  /// - Returns: False if the message was not sent: the port is invalid, the queue stayed full, or there is a part of
  ///   another kind, which is reported.
  ///
  /// Can be called from any thread. Data in the array is copied, as Foundation does whenever it makes `Data` of
  /// `NSData` on Linux; ``PortMessage`` and the port's own spelling send without a copy. The corresponding Foundation
  /// method is `send(before:components:from:reserved:)`.
  @discardableResult
  public func send(
    before limitDate: Date, components: NSMutableArray?, from receivePort: Port?, reserved headerSpaceReserved: Int
  ) -> Bool {
    send(before: limitDate, msgid: 0, components: components, from: receivePort, reserved: headerSpaceReserved)
  }

  /// Queues a message with a number for a loop that has this port in a mode that it runs, and waits for room until a
  /// date.
  ///
  /// It behaves like ``send(before:components:from:reserved:)``; of the number, the lowest 32 bits are sent. The
  /// corresponding Foundation method is `send(before:msgid:components:from:reserved:)`.
  @discardableResult
  public func send(
    before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
    reserved headerSpaceReserved: Int
  ) -> Bool {
    guard let parts = Message.parts(components ?? [], Message.Component.init(value:)) else { return false }
    return send(parts, id: UInt32(truncatingIfNeeded: msgID), from: receivePort, before: limitDate)
  }

  /// Sends, and says whether that could be done.
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
  /// The port itself.
  ///
  /// The corresponding Foundation method is `copy(with:)`.
  public func copy(with zone: NSZone? = nil) -> Any { self }
}
