// SPDX-License-Identifier: Apache-2.0

public import Foundation
import RunLoopCore
public import RunLoopFoundation

// Delegates of this package's protocol for Foundation's socket ports.
extension SocketPort {
  /// Sets the object that receives this port's messages, as a delegate of this package's protocol.
  ///
  /// The delegate is called on the thread of the loop that contains the port, and is not retained. Messages contain the
  /// parts and the number; the ports, which are Foundation's, are in `foundationSendPort` and `foundationReceivePort`.
  ///
  /// The corresponding Foundation method is `setDelegate(_:)`, which also removes the delegate with `setDelegate(nil)`.
  @_disfavoredOverload
  public func setDelegate(_ delegate: (any RunLoopFoundation.PortDelegate)?) {
    setDelegate(SocketDelegates.shared.translator(of: self, delegate))
  }

  /// Returns the object that receives this port's messages, if it is a delegate of this package's protocol.
  ///
  /// Specify the type explicitly, as in `let delegate: (any PortDelegate)?`. Otherwise, Foundation's method is called.
  /// The corresponding Foundation method is `delegate()`.
  @_disfavoredOverload
  public func delegate() -> (any RunLoopFoundation.PortDelegate)? {
    let delegate: (any Foundation.PortDelegate)? = delegate()
    return (delegate as? MessageTranslator)?.delegate
  }
}

/// Passes the messages of a Foundation port to a delegate of this package's protocol.
private final class MessageTranslator: Foundation.PortDelegate {
  private(set) weak var delegate: (any RunLoopFoundation.PortDelegate)?

  init(_ delegate: any RunLoopFoundation.PortDelegate) { self.delegate = delegate }

  func handle(_ message: Foundation.PortMessage) {
    let translated = RunLoopFoundation.PortMessage(
      between: (send: message.sendPort, receive: message.receivePort), components: message.components)
    translated.msgid = message.msgid
    delegate?.handle(translated)
  }
}

/// Retains the translators as long as their ports exist, because ports do not retain their delegates.
private final class SocketDelegates: @unchecked Sendable {
  // Sendable: the lock guards the variables.

  private struct Entry {
    weak var port: SocketPort?
    let translator: MessageTranslator
  }

  /// The number of entries at which those of deallocated ports are removed.
  private var limit = 16

  static let shared = SocketDelegates()
  private let lock = Lock()
  private var entries: [ObjectIdentifier: Entry] = [:]

  /// Replaces the delegate of a port, and returns the translator for the new one, or nil if there is none.
  func translator(
    of port: SocketPort, _ delegate: (any RunLoopFoundation.PortDelegate)?
  ) -> (any Foundation.PortDelegate)? {
    let made = delegate.map(MessageTranslator.init)
    lock.lock()
    // Released without the lock: replaced and swept entries, and ports whose last reference was taken by the sweep.
    var swept: [ObjectIdentifier: Entry] = [:]
    var seen: [SocketPort] = []
    if entries.count >= limit {
      swept = entries
      entries = entries.filter { _, entry in
        guard let port = entry.port else { return false }
        seen.append(port)
        return true
      }
      limit = max(16, 2 * entries.count)
    }
    let replaced = entries.removeValue(forKey: ObjectIdentifier(port))
    if let made { entries[ObjectIdentifier(port)] = Entry(port: port, translator: made) }
    lock.unlock()
    withExtendedLifetime((swept, seen, replaced)) {}
    return made
  }
}
