// SPDX-License-Identifier: Apache-2.0

extension Port: CustomDebugStringConvertible {
  /// The port's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    "<\(type(of: self)) \(addressDescription(self))>{valid = \(yesOrNo(isValid)), version = 1, "
      + "messages = \(waitingMessages), dropped = \(droppedMessages), "
      + "\(callOutDescription(heldCode { code }))}"
  }
}
