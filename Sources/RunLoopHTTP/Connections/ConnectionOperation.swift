// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore
package import RunLoopThreads

extension HTTP {
  /// A connection that is scheduled on a thread's loop, and is started, paused and cancelled on that thread.
  ///
  /// It corresponds to `AFURLConnectionOperation` in AFNetworking 2.
  package final class ConnectionOperation: @unchecked Sendable {
    // Sendable: the lock guards the state shared between threads; the connection is used only by the network thread.

    package typealias Phase = ConnectionOperationState.Phase

    /// AFNetworking's `networkRequestThread`, which all operations share and which never ends; nil if it cannot be
    /// started.
    package static var sharedThread: ResidentThread? { shared.thread }
    private static let shared = SharedThread()

    private final class SharedThread: @unchecked Sendable {
      // Sendable: the lock guards the thread.
      private let lock = Lock()
      private let generation = ForkGeneration.current
      private var made: ResidentThread?

      /// The thread, which is started on first use, and again after a failure.
      ///
      /// The lock is held during the start, so there is never a second thread.
      var thread: ResidentThread? {
        guard !generation.isPast else { return nil }
        lock.lock()
        defer { lock.unlock() }
        if made == nil { made = try? ResidentThread(name: "AFNetworking") }
        return made
      }
    }

    /// The steps of an operation that run on the network thread.
    package struct Actions: Sendable {
      /// Creates the connection, which is then scheduled and started, or returns nil if the operation has ended
      /// instead.
      package var connect: @Sendable () -> Connection?
      /// Called once, instead of the connection's end, when the operation was cancelled.
      package var cancelled: @Sendable () -> Void

      package init(connect: @escaping @Sendable () -> Connection?, cancelled: @escaping @Sendable () -> Void) {
        self.connect = connect
        self.cancelled = cancelled
      }
    }

    private let thread: ResidentThread
    private let lock = Lock()
    // Guarded by the lock.
    private var state = ConnectionOperationState()
    private var modes: [RunLoop.Mode]
    private var actions: Actions?
    /// The object that owns the operation, retained from its start to its end.
    private var owner: (any AnyObject & Sendable)?

    // Used only on the network thread.
    private var connection: Connection?

    package init(on thread: ResidentThread, inModes modes: [RunLoop.Mode] = [.common], _ actions: Actions) {
      self.thread = thread
      self.modes = modes
      self.actions = actions
    }

    package var phase: Phase { lock.withLock { state.phase } }
    package var isCancelled: Bool { lock.withLock { state.isCancelled } }
    /// The modes in which the operation hops to the thread and its connection reports, by default the common modes.
    package var runLoopModes: [RunLoop.Mode] {
      get { lock.withLock { modes } }
      set { lock.withLock { modes = newValue } }
    }

    /// Applies an event and performs the resulting step on the network thread.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - owner: An object to retain from the start to the end.
    /// - Returns: The phases before and after the event.
    @discardableResult
    package func apply(
      _ event: ConnectionOperationState.Event, holding owner: (any AnyObject & Sendable)? = nil
    ) -> (Phase, Phase) {
      lock.lock()
      let before = state.phase
      let hop = state.apply(event)
      let after = state.phase
      let modes = modes
      var released: (Actions?, (any AnyObject & Sendable)?)
      if after == .finished {
        released = (actions, self.owner)
        (actions, self.owner) = (nil, nil)
      } else if hop != nil, let owner {
        self.owner = owner
      }
      lock.unlock()
      withExtendedLifetime(released) {}
      guard let hop else { return (before, after) }
      do throws(ThreadError) {
        try thread.perform(inModes: modes) { [self] in perform(hop) }
      } catch {
        // The thread was stopped, so the step is performed here.
        perform(hop)
      }
      return (before, after)
    }

    private func perform(_ hop: ConnectionOperationState.Hop) {
      let (actions, modes) = lock.withLock { (self.actions, self.modes) }
      guard let actions else { return }
      switch hop {
      case .start:
        // The operation may have been cancelled in the meantime; the cancellation arrives here later.
        guard !isCancelled else { return }
        guard let made = actions.connect() else { return }
        connection = made
        for mode in modes { made.schedule(in: .current, forMode: mode) }
        made.start()
      case .pause: connection?.pause()
      case .resume: connection?.resume()
      case .cancel:
        // The connection may have ended already.
        guard connection?.hasEnded != true else { return }
        connection?.cancel()
        connection = nil
        actions.cancelled()
      }
    }

    /// Called on the network thread after the last call of the connection's delegate.
    package func connectionHasEnded() { connection = nil }
  }
}
