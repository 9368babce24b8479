// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Local: MessagePortItem {
  package var keepAliveDetail: String { "receives as \(name)" }

  var watched: MessagePort.Descriptor { epoll }

  func withRegistrations<Result: Sendable>(_ body: (inout MessagePortRegistrations) -> Result) -> Result? {
    lock.ifOwned(else: nil) { held == nil ? nil : body(&registrations) }
  }

  /// Accepts connections and receives messages; must be called on a loop's thread.
  func serve() {
    if serveFavourite() { return }
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 16) { events in
      let answer = try? SystemCall.epollWait.make {
        crl_epoll_wait_milliseconds(epoll.number, events.baseAddress, Int32(events.count), 0)
      }
      let count = Int(answer ?? 0)
      for event in events.prefix(count) {
        let key = event.data.u64
        guard key != 0 else {
          takeConnections()
          continue
        }
        lock.lock()
        let client = clients[key]
        let deliver = deliver
        if count == 1, let client { favourite = (client, 0) }
        lock.unlock()
        guard let client, let deliver else { continue }
        if case .isOver = client.serve(event.events, deliver) { drop(client) }
      }
    }
  }

  /// The number of times a connection is served before the epoll set is asked again.
  private static let favouriteTurns = 8

  /// Serves the only connection that was ready last time, which is likely to be ready again.
  ///
  /// Returns false if the epoll set has to be asked. A port usually has one sender, for which asking would cost a
  /// system call per message.
  private func serveFavourite() -> Bool {
    lock.lock()
    guard let (client, turns) = favourite, let deliver, turns < Self.favouriteTurns else {
      lock.unlock()
      return false
    }
    favourite?.turns += 1
    lock.unlock()
    switch client.serveUnasked(deliver) {
    case .isDone: return true
    case .isOver:
      drop(client)
      return true
    case .hadNothing:
      lock.withLock { favourite = nil }
      return false
    }
  }

  private func drop(_ client: LocalClient) {
    client.close()
    lock.withLock {
      clients.removeValue(forKey: client.key)
      if favourite?.client === client { favourite = nil }
    }
  }
}

// MARK: - Connections
extension MessagePort.Local {
  private func takeConnections() {
    guard let name = lock.withLock({ held }) else { return }
    // Sockets that were kept for unread replies may be closed by now.
    account.noteReading()
    for account in lock.withLock({ Array(users.values) }) { account.noteReading() }
    if lock.withLock({ spare == nil }) { makeSpare() }
    // Do not accept connections if a rejected one could not be closed at once.
    guard !lock.withLock({ users.values.contains(where: \.isFullOfRejected) }) else { return postpone() }
    // Bounded, because connections may arrive faster than they are accepted.
    for _ in 0..<16 {
      switch takeConnection(name.listener) {
      case .taken:
        guard lock.withLock({ users.values.contains(where: \.isFullOfRejected) }) else { continue }
        return postpone()
      case .none: break
      // The listener stays disarmed, because it would otherwise wake the loop repeatedly.
      case .exhausted: return postpone()
      }
      break
    }
    listenAgain(name)
  }

  private func listenAgain(_ name: MessageName) {
    _ = try? SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, EPOLL_CTL_MOD, name.listener.number, Self.listening, 0)
    }
  }

  /// The time to wait before trying again when the system lacks resources for a connection.
  private static var retryInterval: Duration { .milliseconds(100) }

  private func postpone() {
    let timer = RegisteredTimer(deadline: RunLoop.current.instant(after: Self.retryInterval)) { [weak self] _ in
      self?.tryAgain()
    }
    withRegistrations { $0.replaceTimer(timer) }??.invalidate()
  }

  /// Listens again, on the first loop whose timer fires.
  private func tryAgain() {
    lock.lock()
    let timer = held == nil ? nil : registrations.replaceTimer(nil)
    let name = held
    lock.unlock()
    timer?.invalidate()
    if let name, timer != nil { listenAgain(name) }
  }

  private enum Acceptance {
    case taken
    case none
    /// A connection is waiting but cannot be accepted now.
    case exhausted
  }

  private func takeConnection(_ listener: MessagePort.Descriptor) -> Acceptance {
    guard SystemCall.isReadable(listener) else { return .none }
    do throws(SystemError) {
      let number = try SystemCall.accept.make { crl_accept(listener.number) }
      welcome(MessagePort.Descriptor(owning: number, .connection))
      return .taken
    } catch {
      switch error.number {
      case EAGAIN, EINTR, ECONNABORTED: return .none
      default: break
      }
      account.change { $0.rejectedConnectionCount += 1 }
      return [EMFILE, ENFILE].contains(error.number) && rejectConnection(listener) ? .none : .exhausted
    }
  }

  private func welcome(_ socket: MessagePort.Descriptor) {
    func reject(_ reason: MessagePort.Rejection) {
      try? MessageContent(.rejection, id: reason.rawValue, token: 0).send(on: socket)
    }
    guard let credentials = try? MessagePort.Credentials(of: socket) else {
      self.account.change { $0.untrustedCount += 1 }
      return reject(.untrusted)
    }
    noteCall(of: Admission(accepts: accepts))
    guard accepts(credentials) else {
      self.account.change { $0.untrustedCount += 1 }
      reject(.untrusted)
      return dismiss(socket, credentials)
    }
    let account = account(of: credentials)
    guard account.take(.init(connections: 1)) else {
      self.account.change { $0.rejectedConnectionCount += 1 }
      reject(.tooManyConnections)
      return dismiss(socket, credentials)
    }
    // Charged until the socket has been closed, which may be later than the connection's end.
    socket.charge(MessageCharge(.init(connections: 1), to: account))
    let isForeign = account !== self.account
    let silenceEnd = isForeign ? RunLoop.current.instant(after: limits.otherUsers.silence) : nil
    let client = lock.withLock { () -> LocalClient? in
      guard held != nil else { return nil }
      lastKey += 1
      let client = LocalClient(lastKey, socket, credentials, of: self, account, silenceEnd: silenceEnd)
      clients[lastKey] = client
      return client
    }
    guard let client else { return reject(.invalidated) }
    do throws(SystemError) {
      try client.enter()
      self.account.change { $0.connectionCount += 1 }
      if silenceEnd != nil { awaitSpeech() }
    } catch {
      self.account.change { $0.rejectedConnectionCount += 1 }
      reject(.noResources)
      drop(client)
    }
  }

  /// Closes a rejected connection, charging another user until it is closed.
  private func dismiss(_ socket: MessagePort.Descriptor, _ peer: MessagePort.Credentials) {
    guard !peer.isSameUser, !MessagePort.Descriptor.Closing.drain(socket.number) else { return socket.close() }
    let account = account(of: peer)
    // Fails only at the total limit, because a connection is accepted only if its account has room.
    if account.take(.init(rejected: 1)) { socket.charge(MessageCharge(.init(rejected: 1), to: account)) }
    socket.close()
  }

  /// Returns the account of a connection: the port's for this user, or a separate one for another user.
  private func account(of peer: MessagePort.Credentials) -> MessageAccount {
    guard !peer.isSameUser else { return account }
    return lock.withLock {
      if let found = users[peer.user] { return found }
      // Unused accounts are created again when they are needed.
      for (user, account) in users where account.isUnused { users[user] = nil }
      let most = limits.otherUsers
      let made = MessageAccount(
        .init(
          connections: most.connections, incoming: most.bytes, outgoing: most.bytes,
          descriptors: most.descriptors - most.rejected, rejected: max(1, most.rejected)), above: account)
      users[peer.user] = made
      return made
    }
  }

  /// Starts the timer that closes connections on which no message was sent.
  private func awaitSpeech() {
    lock.lock()
    let next =
      registrations.hasTimer(.silence) ? nil : clients.values.filter(\.mustSpeak).compactMap(\.silenceEnd).min()
    if let next, held != nil {
      _ = registrations.replaceTimer(RegisteredTimer(deadline: next) { [weak self] _ in self?.endSilence() }, .silence)
    }
    lock.unlock()
  }

  /// Closes the connections whose time limit for the first message has passed; must be called on a loop's thread.
  private func endSilence() {
    let now = RunLoop.current.now
    lock.lock()
    let timer = registrations.replaceTimer(nil, .silence)
    let all = held == nil ? [] : Array(clients.values)
    lock.unlock()
    timer?.invalidate()
    for client in all where client.isSilent(at: now) {
      account.change { $0.silentCount += 1 }
      drop(client)
    }
    awaitSpeech()
  }

  /// Accepts a connection only to close it, because it would otherwise wake the loop repeatedly, or returns false if no
  /// descriptor is available for that.
  private func rejectConnection(_ listener: MessagePort.Descriptor) -> Bool {
    guard let spare = lock.withLock({ self.spare.take() }) else { return false }
    // This frees a descriptor for a moment.
    spare.close()
    defer { makeSpare() }
    guard let socket = try? SystemCall.accept.make({ crl_accept(listener.number) }) else { return false }
    MessagePort.Descriptor(owning: socket, .connection).close()
    return true
  }

  /// Creates the spare descriptor, or leaves that to the next connection if there is none left.
  private func makeSpare() {
    let made = try? MessagePort.Descriptor(duplicating: epoll.number)
    lock.withLock { spare = made }
  }
}
