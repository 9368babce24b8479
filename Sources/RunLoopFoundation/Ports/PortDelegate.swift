// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A receiver of a port's messages.
///
/// The corresponding Foundation protocol is `PortDelegate`.
public protocol PortDelegate: AnyObject {
  /// Handles a message, on the thread of a loop that the port is in.
  ///
  /// The default implementation does nothing. The corresponding Foundation method is `handle(_:)`.
  func handle(_ message: PortMessage)
}

extension PortDelegate {
  /// Ignores the message.
  public func handle(_ message: PortMessage) {}
}

extension Port {
  /// Sets the receiver of this port's messages.
  ///
  /// The port does not retain its delegate. A port that was created with a handler delivers its messages to the
  /// handler instead. A message without a receiver counts as dropped. Can be called from any thread, but the caller
  /// has to ensure that the delegate may be used on the thread of the port's loop. The corresponding Foundation method
  /// is `setDelegate(_:)`.
  public func setDelegate(_ delegate: (any PortDelegate)?) {  // A subclass overrides receive(_:) instead.
    receiver = delegate.map(DelegateReceiver.init)
  }

  /// Returns the receiver of this port's messages, if one was set and still exists.
  ///
  /// The corresponding Foundation method is `delegate()`.
  public func delegate() -> (any PortDelegate)? {  // A subclass overrides receive(_:) instead.
    (receiver as? DelegateReceiver)?.delegate
  }
}

private final class DelegateReceiver: PortReceiver, @unchecked Sendable {
  // Sendable: the reference is written once. The code that sets the delegate guarantees that it may be used on the
  // thread of the port's loop.
  private(set) weak var delegate: (any PortDelegate)?

  init(_ delegate: any PortDelegate) {
    self.delegate = delegate
  }

  func receive(_ message: Port.Message, at port: Port) -> Bool {
    guard let delegate else { return false }
    noteCall(on: type(of: delegate))
    delegate.handle(PortMessage(message, receivedAt: port))
    return true
  }
}
