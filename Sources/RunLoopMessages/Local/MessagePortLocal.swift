// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort {
  /// A port that has a name and receives messages, on the loops that it was added to.
  ///
  /// A loop keeps the ports that are in it alive. In several loops, the messages of different senders may be received
  /// at the same time; those of one sender one after the other, in their order.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateLocal`.
  public final class Local: @unchecked Sendable {
    // Sendable: the variables are guarded by the lock. Nothing that is called under it calls back, so that those of
    // each message are not checked for exclusive access.

    /// The name.
    public let name: String
    /// How much the port takes.
    public let limits: Limits

    let epoll: Descriptor
    let lock = ProcessLock()
    var registrations = MessagePortRegistrations()
    let accepts: @Sendable (Credentials) -> Bool
    /// What all connections cost, and those of each other user.
    let account: MessageAccount
    var users: [UInt32: MessageAccount] = [:]
    var held: MessageName?
    @exclusivity(unchecked) var deliver: (@Sendable (Request) -> Void)?
    var clients: [UInt64: LocalClient] = [:]
    /// The connection that alone had something when the set was last asked, and how often it was served since.
    @exclusivity(unchecked) var favourite: (client: LocalClient, turns: Int)?
    var lastKey: UInt64 = 0
    private var observers = InvalidationList<InvalidationObserver>()
    /// Given up for a moment to take a connection and refuse it, when there is no other descriptor left.
    var spare: Descriptor?
    /// The port's messages as a sequence, if that is how they are received.
    let queue: RequestQueue?

    private struct InvalidationObserver {
      let call: @Sendable (Local) -> Void
    }

    private struct Handler {
      let call: @Sendable (Request) -> Reply?
    }

    /// Whether to take messages of a process.
    struct Admission {
      let accepts: @Sendable (Credentials) -> Bool
    }

    /// Takes a name and makes a port that is in no mode.
    ///
    /// - Parameters:
    ///   - name: One to 64 ASCII letters, digits, `.`, `-` and `_`, the first a letter or digit; not ending in `.lock`.
    ///   - directory: Where the names are.
    ///   - limits: How much the port takes.
    ///   - accepts: Whether to take messages of a process; only of the same user's by default. Called on a loop's
    ///     thread, once for each connection.
    ///   - handler: Called on a loop's thread for each message, with no lock held; what it returns is the reply, if one
    ///     is awaited. It is released when the port is invalid and no call-out runs.
    /// - Throws: ``MessagePortError/nameInUse(_:)``, ``MessagePortError/invalidName(_:)``,
    ///   ``MessagePortError/pathTooLong(_:)``, ``MessagePortError/unsafeDirectory(_:_:)``,
    ///   ``MessagePortError/system(_:)``.
    public convenience init(
      name: String, directory: Directory = .user, limits: Limits = Limits(),
      accepts: @escaping @Sendable (Credentials) -> Bool = { $0.isSameUser },
      handler: @escaping @Sendable (Request) -> Reply?
    ) throws(MessagePortError) {
      try self.init(name, directory, limits, accepts, nil) { request in
        noteCall(of: Handler(call: handler))
        request.reply(handler(request))
      }
    }

    init(
      _ name: String, _ directory: Directory, _ limits: Limits, _ accepts: @escaping @Sendable (Credentials) -> Bool,
      _ queue: RequestQueue?, deliver: @escaping @Sendable (Request) -> Void
    ) throws(MessagePortError) {
      self.name = name
      self.limits = limits
      account = MessageAccount(
        .init(
          connections: limits.maximumConnectionCount, incoming: max(limits.maximumByteCount, limits.maximumMessageSize),
          outgoing: max(limits.maximumByteCount, limits.maximumMessageSize), descriptors: limits.descriptors,
          rejected: .max))
      self.accepts = accepts
      self.queue = queue
      self.deliver = deliver
      let held = try MessageName(name, in: directory)
      self.held = held
      do {
        epoll = Descriptor(owning: try SystemCall.epollCreate.make { crl_epoll_create() })
        spare = try Descriptor(duplicating: epoll.number)
        _ = try SystemCall.epollControl.make {
          crl_epoll_control(epoll.number, EPOLL_CTL_ADD, held.listener.number, Self.listening, 0)
        }
      } catch { throw .system(error) }
    }

    deinit { close() }

    static let listening = EPOLLIN.rawValue | EPOLLONESHOT.rawValue

    /// Whether the port can still receive.
    ///
    /// Can be used from any thread.
    public var isValid: Bool { lock.ifOwned(else: false) { held != nil } }

    /// Ends the port permanently: it releases the name and ends all connections.
    ///
    /// The port leaves all modes, and senders are notified. Then the observers are called, on this thread. Can be
    /// called from any thread. Calling it again has no effect.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortInvalidate`.
    public func invalidate() { for observer in close() { observer.call(self) } }

    /// Calls a closure when the port is invalidated, once, on the thread that does so; at once if it is invalid
    /// already.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortSetInvalidationCallBack`.
    public func observeInvalidation(_ body: @escaping @Sendable (Local) -> Void) {
      let isOver = lock.ifOwned(else: true) {
        if held != nil { observers.append(.init(call: body)) }
        return held == nil
      }
      if isOver { body(self) }
    }

    /// What has arrived at the port so far.
    ///
    /// Can be used from any thread.
    public var statistics: Statistics { account.statistics }

    /// How many senders are connected.
    ///
    /// Can be used from any thread.
    public var connectionCount: Int { lock.ifOwned(else: 0) { clients.count } }

    /// Ends everything, and returns who is to be notified.
    @discardableResult
    private func close() -> [InvalidationObserver] {
      // A child of a fork has copies of the descriptors, which go with this object; the rest is its parent's.
      guard lock.lockUnlessParents() else { return [] }
      guard let name = held else {
        lock.unlock()
        return []
      }
      held = nil
      let handler = deliver
      deliver = nil
      let clients = clients
      self.clients = [:]
      favourite = nil
      let timer = registrations.replaceTimer(nil)
      let silenceTimer = registrations.replaceTimer(nil, .silence)
      let sources = registrations.removeAll()
      let observers = observers.takeAll()
      let users = Array(users.values)
      lock.unlock()
      for source in sources { source.invalidate() }
      timer?.invalidate()
      silenceTimer?.invalidate()
      queue?.end()
      for client in clients.values { client.close() }
      account.end()
      for account in users { account.end() }
      // The name and the handler go here, outside the lock.
      withExtendedLifetime((name, handler)) {}
      return observers
    }
  }
}

extension MessagePort.Local: CustomDebugStringConvertible {
  /// The port's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    lock.ifOwned(else: "<MessagePort.Local>{name = \(name), valid = No}") {
      "<MessagePort.Local \(UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()))>{name = \(name), "
        + "valid = \(held == nil ? "No" : "Yes"), connections = \(clients.count)}"
    }
  }
}
