// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore
package import RunLoopThreads

extension HTTP {
  /// A connection whose start, pause and cancellation hop to a thread, on whose loop it is scheduled: what
  /// `AFURLConnectionOperation` is in AFNetworking 2.
  package final class ConnectionOperation: @unchecked Sendable {
    // Sendable: the lock guards what any thread uses; the connection is the network thread's.

    package typealias Phase = ConnectionOperationState.Phase

    /// AFNetworking's `networkRequestThread`: one for all operations, which stays; nil if it cannot be started now.
    package static var sharedThread: ResidentThread? { shared.thread }
    private static let shared = SharedThread()

    private final class SharedThread: @unchecked Sendable {
      // Sendable: the lock guards the thread.
      private let lock = Lock()
      private var made: ResidentThread?

      /// The thread, which the first who asks starts, and whoever asks after a failure.
      ///
      /// The others wait for it: there is never a second one.
      var thread: ResidentThread? {
        lock.lock()
        defer { lock.unlock() }
        if made == nil { made = try? ResidentThread(name: "AFNetworking") }
        return made
      }
    }

    /// What an operation does on the network thread.
    package struct Actions: Sendable {
      /// Makes the connection, which is scheduled and started then; nil: the operation has ended instead.
      package var connect: @Sendable () -> Connection?
      /// The operation was cancelled; called once, instead of the connection's end.
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
    /// Whose operation it is, from its start to its end.
    private var owner: (any AnyObject & Sendable)?

    // The network thread's.
    private var connection: Connection?

    package init(on thread: ResidentThread, inModes modes: [RunLoop.Mode] = [.common], _ actions: Actions) {
      self.thread = thread
      self.modes = modes
      self.actions = actions
    }

    package var phase: Phase { lock.withLock { state.phase } }
    package var isCancelled: Bool { lock.withLock { state.isCancelled } }
    /// The modes in which it hops and its connection calls out, the common ones unless said otherwise.
    package var runLoopModes: [RunLoop.Mode] {
      get { lock.withLock { modes } }
      set { lock.withLock { modes = newValue } }
    }

    /// Applies an event and hops to the thread with what follows.
    ///
    /// - Parameters:
    ///   - event: What happens.
    ///   - owner: Held from the start to the end.
    /// - Returns: The phases before and after it.
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
        // The thread was stopped: nobody else is left who could do it.
        perform(hop)
      }
      return (before, after)
    }

    private func perform(_ hop: ConnectionOperationState.Hop) {
      let (actions, modes) = lock.withLock { (self.actions, self.modes) }
      guard let actions else { return }
      switch hop {
      case .start:
        // It may have been cancelled on its way: that hops here too.
        guard !isCancelled else { return }
        guard let made = actions.connect() else { return }
        connection = made
        for mode in modes { made.schedule(in: .current, forMode: mode) }
        made.start()
      case .pause: connection?.pause()
      case .resume: connection?.resume()
      case .cancel:
        // The end may have been before.
        guard connection?.hasEnded != true else { return }
        connection?.cancel()
        connection = nil
        actions.cancelled()
      }
    }

    /// The connection's delegate has been called for the last time.
    ///
    /// The network thread.
    package func connectionHasEnded() { connection = nil }
  }
}
