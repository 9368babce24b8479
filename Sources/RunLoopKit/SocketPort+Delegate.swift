// SPDX-License-Identifier: Apache-2.0

public import Foundation
import RunLoopCore
public import RunLoopFoundation

// A delegate in our spelling for Foundation's socket ports.
extension SocketPort {
  /// Sets the receiver of the messages of this port, in the spelling of this package.
  ///
  /// The delegate is called on the thread of the loop that the port is in, and is not kept alive. Its messages have the
  /// parts and the number; the ports, which are Foundation's, are in their `foundationSendPort` and
  /// `foundationReceivePort`.
  ///
  /// The corresponding Foundation method is `setDelegate(_:)`, which also removes the delegate: `setDelegate(nil)`.
  @_disfavoredOverload
  public func setDelegate(_ delegate: (any RunLoopFoundation.PortDelegate)?) {
    setDelegate(SocketDelegates.shared.translator(of: self, delegate))
  }

  /// The receiver of the messages of this port, if it is one of this package's spelling.
  ///
  /// Name the type that you ask for, as in `let delegate: (any PortDelegate)?`: otherwise Foundation's method is
  /// called. The corresponding Foundation method is `delegate()`.
  @_disfavoredOverload
  public func delegate() -> (any RunLoopFoundation.PortDelegate)? {
    let delegate: (any Foundation.PortDelegate)? = delegate()
    return (delegate as? MessageTranslator)?.delegate
  }
}

/// Gives the messages of a port of Foundation's to a delegate of ours.
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

/// Keeps the translators for as long as their ports live, since a port keeps no delegate.
private final class SocketDelegates: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  private struct Entry {
    weak var port: SocketPort?
    let translator: MessageTranslator
  }

  /// How many entries there may be until those of ports that are gone are looked for.
  private var limit = 16

  static let shared = SocketDelegates()
  private let lock = Lock()
  private var entries: [ObjectIdentifier: Entry] = [:]

  /// The translator of a port for a delegate, in place of the one before; nil for none.
  func translator(
    of port: SocketPort, _ delegate: (any RunLoopFoundation.PortDelegate)?
  ) -> (any Foundation.PortDelegate)? {
    let made = delegate.map(MessageTranslator.init)
    lock.lock()
    // Released outside the lock: what is replaced, what is swept, and a port of which the sweep had the last reference.
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
