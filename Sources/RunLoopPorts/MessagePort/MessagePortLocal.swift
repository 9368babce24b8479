import CRunLoopSystem
import Glibc
import RunLoopCore

extension MessagePort {
  /// A port that has a name and receives messages, on the loops that it was added to.
  ///
  /// A loop keeps the ports that are in it alive. In several loops, the messages of different senders may be received at the
  /// same time; those of one sender one after the other, in their order.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateLocal`.
  public final class Local: @unchecked Sendable, Hashable {
    // Sendable: the variables are guarded by the lock.

    /// The name.
    public let name: String
    /// How much the port takes.
    public let limits: Limits

    let epoll: Descriptor
    let counters = LocalCounters()
    let lock = Lock()
    var places = MessagePortPlaces()
    private let accepts: @Sendable (Credentials) -> Bool
    private var held: MessageName?
    private var deliver: (@Sendable (Request) -> Void)?
    private var clients: [UInt64: LocalClient] = [:]
    private var lastKey: UInt64 = 0
    private var observers = InvalidationList<Local>()
    /// Given up for a moment to take a connection and refuse it, when there is no other descriptor left.
    private var spare: Descriptor?
    /// The port's messages as a sequence, if that is how they are received.
    let queue: RequestQueue?

    /// Takes a name and makes a port that is in no mode.
    ///
    /// - Parameters:
    ///   - name: One to 64 ASCII letters, digits, `.`, `-` and `_`, the first a letter or digit; not ending in `.lock`.
    ///   - directory: Where the names are.
    ///   - limits: How much the port takes.
    ///   - accepts: Whether to take messages of a process; only of the same user's if not told otherwise. Called on a
    ///     loop's thread, once for each connection.
    ///   - handler: Called on a loop's thread for each message, with no lock held; what it gives is the reply, if one is
    ///     awaited. It is released when the port is invalid and no call-out runs.
    /// - Throws: ``MessagePortError/nameInUse(_:)``, ``MessagePortError/invalidName(_:)``,
    ///   ``MessagePortError/pathTooLong(_:)``, ``MessagePortError/unsafeDirectory(_:_:)``, ``MessagePortError/system(_:)``.
    public convenience init(
      name: String, directory: Directory = .user, limits: Limits = Limits(),
      accepts: @escaping @Sendable (Credentials) -> Bool = { $0.isSameUser },
      handler: @escaping @Sendable (Request) -> Reply?
    ) throws(MessagePortError) {
      try self.init(name, directory, limits, accepts, nil) { request in request.reply(handler(request)) }
    }

    init(
      _ name: String, _ directory: Directory, _ limits: Limits, _ accepts: @escaping @Sendable (Credentials) -> Bool,
      _ queue: RequestQueue?, deliver: @escaping @Sendable (Request) -> Void
    ) throws(MessagePortError) {
      self.name = name
      self.limits = limits
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

    private static let listening = EPOLLIN.rawValue | EPOLLONESHOT.rawValue

    /// Whether the port can still receive.
    ///
    /// Any thread.
    public var isValid: Bool { lock.withLock { held != nil } }

    /// Gives the name up and ends all connections, for good.
    ///
    /// The port leaves all modes; senders are told. Then the observers are called, on this thread. Any thread; again: nothing.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortInvalidate`.
    public func invalidate() { for observer in close() { observer(self) } }

    /// Calls a closure when the port is invalidated, once, on the thread that does so; at once if it is invalid already.
    ///
    /// The corresponding Core Foundation function is `CFMessagePortSetInvalidationCallBack`.
    public func observeInvalidation(_ body: @escaping @Sendable (Local) -> Void) {
      let isOver = lock.withLock {
        if held != nil { observers.append(body) }
        return held == nil
      }
      if isOver { body(self) }
    }

    /// What has come to the port so far.
    ///
    /// Any thread.
    public var statistics: Statistics { counters.now }

    /// How many senders are connected.
    ///
    /// Any thread.
    public var connections: Int { lock.withLock { clients.count } }

    /// Whether both are the same.
    public static func == (left: Local, right: Local) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// Ends everything, and gives who is to be told.
    @discardableResult
    private func close() -> [@Sendable (Local) -> Void] {
      lock.lock()
      guard let name = held else {
        lock.unlock()
        return []
      }
      held = nil
      let handler = deliver
      deliver = nil
      let clients = clients
      self.clients = [:]
      let sources = places.removeAll()
      let observers = observers.takeAll()
      lock.unlock()
      for source in sources { source.invalidate() }
      queue?.end()
      for client in clients.values { client.close() }
      // The name and the handler go here, outside the lock.
      withExtendedLifetime((name, handler)) {}
      return observers
    }
  }
}

extension MessagePort.Local: MessagePortItem {
  var watched: MessagePort.Descriptor { epoll }

  func withPlaces<Result: Sendable>(_ body: (inout MessagePortPlaces) -> Result) -> Result? {
    lock.withLock { held == nil ? nil : body(&places) }
  }

  /// Takes connections and messages; a loop's thread.
  func serve() {
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 16) { events in
      let count = try? SystemCall.epollWait.make {
        crl_epoll_wait_milliseconds(epoll.number, events.baseAddress, Int32(events.count), 0)
      }
      for event in events.prefix(Int(count ?? 0)) {
        let key = event.data.u64
        guard key != 0 else {
          takeConnections()
          continue
        }
        lock.lock()
        let client = clients[key]
        let deliver = deliver
        lock.unlock()
        guard let client, let deliver else { continue }
        if !client.serve(event.events, deliver) { drop(client) }
      }
    }
  }

  private func drop(_ client: LocalClient) {
    client.close()
    _ = lock.withLock { clients.removeValue(forKey: client.key) }
  }

  private func takeConnections() {
    guard let name = lock.withLock({ held }) else { return }
    if lock.withLock({ spare == nil }) { makeSpare() }
    // Not without end, however many come.
    for _ in 0..<16 { guard takeConnection(name.listener) else { break } }
    _ = try? SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_MOD, name.listener.number, Self.listening, 0)
    }
  }

  /// Takes one connection; false: there is none now.
  private func takeConnection(_ listener: MessagePort.Descriptor) -> Bool {
    guard SystemCall.isReadable(listener) else { return false }
    do {
      try welcome(MessagePort.Descriptor(owning: try SystemCall.accept.make { crl_accept(listener.number) }))
      return true
    } catch {
      switch error.number {
      case EAGAIN, EINTR, ECONNABORTED: return false
      case EMFILE, ENFILE: refuseConnection(listener)
      default: break
      }
      counters.change { $0.refusedConnections += 1 }
      return false
    }
  }

  private func welcome(_ socket: MessagePort.Descriptor) throws(SystemError) {
    func refuse(_ reason: MessagePort.Refusal) {
      try? MessageContent(.refusal, id: reason.rawValue, token: 0).send(on: socket)
    }
    guard let credentials = try? MessagePort.Credentials(of: socket), accepts(credentials) else {
      counters.change { $0.untrusted += 1 }
      return refuse(.untrusted)
    }
    let client = lock.withLock { () -> LocalClient? in
      guard held != nil, clients.count < limits.connections else { return nil }
      lastKey += 1
      let client = LocalClient(lastKey, socket, credentials, of: self)
      clients[lastKey] = client
      return client
    }
    guard let client else {
      counters.change { $0.refusedConnections += 1 }
      return refuse(.tooManyConnections)
    }
    do throws(SystemError) {
      try client.enter()
      counters.change { $0.connections += 1 }
    } catch {
      refuse(.noResources)
      drop(client)
      throw error
    }
  }

  /// Takes a connection only to end it: else it would wake the loop for ever.
  private func refuseConnection(_ listener: MessagePort.Descriptor) {
    guard let spare = lock.withLock({ self.spare.take() }) else { return }
    // The number is free for a moment.
    spare.close()
    if let socket = try? SystemCall.accept.make({ crl_accept(listener.number) }) { _ = crl_close(socket) }
    makeSpare()
  }

  /// Has a descriptor to give up again; if another thread has taken the last, at the next connection.
  private func makeSpare() {
    let made = try? MessagePort.Descriptor(duplicating: epoll.number)
    lock.withLock { spare = made }
  }
}

extension MessagePort.Local: CustomDebugStringConvertible {
  /// The port's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    lock.lock()
    defer { lock.unlock() }
    return "<MessagePort.Local \(UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()))>{name = \(name), "
      + "valid = \(held == nil ? "No" : "Yes"), connections = \(clients.count)}"
  }
}
