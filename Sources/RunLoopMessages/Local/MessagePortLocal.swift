// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort {
  /// A named port that receives messages on the loops that it was added to.
  ///
  /// A loop retains the ports that were added to it. If a port is in several loops, messages of different senders may
  /// be received concurrently; those of one sender are received one at a time and in order.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateLocal`.
  public final class Local: @unchecked Sendable {
    // Sendable: the lock guards all mutable state. No code called with the lock held accesses the variables again, so
    // exclusivity is not checked for those used for each message.

    /// The port's name.
    public let name: String
    /// The port's limits.
    public let limits: Limits

    let epoll: Descriptor
    let lock = ProcessLock()
    var registrations = MessagePortRegistrations()
    let accepts: @Sendable (Credentials) -> Bool
    let account: MessageAccount
    var users: [UInt32: MessageAccount] = [:]
    var held: MessageName?
    @exclusivity(unchecked) var deliver: (@Sendable (Request) -> Void)?
    var clients: [UInt64: LocalClient] = [:]
    /// The only connection that was ready when the epoll set was last asked, and how often it was served since.
    @exclusivity(unchecked) var favourite: (client: LocalClient, turns: Int)?
    var lastKey: UInt64 = 0
    private var observers = InvalidationList<InvalidationObserver>()
    /// Closed temporarily to accept and reject a connection when no other descriptor is left.
    var spare: Descriptor?
    /// The port's messages as a sequence, if it has no handler.
    let queue: RequestQueue?

    private struct InvalidationObserver {
      let call: @Sendable (Local) -> Void
    }

    private struct Handler {
      let call: @Sendable (Request) -> Reply?
    }

    /// The closure that decides whether to accept messages of a process.
    struct Admission {
      let accepts: @Sendable (Credentials) -> Bool
    }

    /// Registers a name and creates a port that is in no mode.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 ASCII letters, digits, `.`, `-` and `_`, starting with a letter or digit and not ending in
    ///     `.lock`.
    ///   - directory: The directory of the name; the user's own by default.
    ///   - limits: The limits of the port.
    ///   - accepts: Returns whether to accept messages of a process; by default, only those of the same user. Called
    ///     on a loop's thread, once for each connection.
    ///   - handler: Called on a loop's thread for each message, without a lock. Its result is the reply if the sender
    ///     expects one. It is released when the port is invalid and no call-out is running.
    /// - Throws: ``MessagePortError/nameInUse(_:)``, ``MessagePortError/invalidName(_:)``,
    ///   ``MessagePortError/pathTooLong(_:)``, ``MessagePortError/unsafeDirectory(_:_:)``, or
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

    /// Whether the port can still receive messages.
    ///
    /// Can be used from any thread.
    public var isValid: Bool { lock.ifOwned(else: false) { held != nil } }

    /// Permanently invalidates the port: it releases its name, leaves all modes, and closes all connections.
    ///
    /// The senders are notified, and then the observers are called on this thread. Can be called from any thread.
    /// Calling it again has no effect.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortInvalidate`.
    public func invalidate() { for observer in close() { observer.call(self) } }

    /// Calls a closure once when the port is invalidated, on the thread that does so, or at once if it is already
    /// invalid.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortSetInvalidationCallBack`.
    public func observeInvalidation(_ body: @escaping @Sendable (Local) -> Void) {
      let isOver = lock.ifOwned(else: true) {
        if held != nil { observers.append(.init(call: body)) }
        return held == nil
      }
      if isOver { body(self) }
    }

    /// The counts of the port's connections and messages so far.
    ///
    /// Can be used from any thread.
    public var statistics: Statistics { account.statistics }

    /// The number of connected senders.
    ///
    /// Can be used from any thread.
    public var connectionCount: Int { lock.ifOwned(else: 0) { clients.count } }

    /// Closes the port, and returns the observers to notify.
    @discardableResult
    private func close() -> [InvalidationObserver] {
      // A child's copies of the descriptors are closed with this object; everything else belongs to the parent.
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
      // The name and the handler are released here, without the lock.
      withExtendedLifetime((name, handler)) {}
      return observers
    }
  }
}

extension MessagePort.Local: CustomDebugStringConvertible {
  /// The port's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String {
    lock.ifOwned(else: "<MessagePort.Local>{name = \(name), valid = No}") {
      "<MessagePort.Local \(UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()))>{name = \(name), "
        + "valid = \(held == nil ? "No" : "Yes"), connections = \(clients.count)}"
    }
  }
}
