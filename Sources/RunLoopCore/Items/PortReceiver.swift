// SPDX-License-Identifier: Apache-2.0

/// Who gets the messages of a port that has no handler.
///
/// A layer above has delegates; the port holds one of these for it.
package protocol PortReceiver: AnyObject, Sendable {
  /// Takes a message, on a loop's thread; false if there is nobody who gets it.
  func receive(_ message: Port.Message, at port: Port) -> Bool
}
