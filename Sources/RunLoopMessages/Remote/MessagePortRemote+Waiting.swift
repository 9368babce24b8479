// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

// A process is not notified when a name appears, and its directory may not exist yet either. Connecting is therefore
// retried, first after a millisecond, then at increasing intervals, and finally every 50 milliseconds. A task waits in
// the same way for room for its connection, because the system only notifies blocking threads of that.

/// The times at which to retry, until a deadline.
private struct Retries {
  private let deadline: Tick
  private var delay: Int64 = 1_000_000

  init(for limit: Duration) {
    deadline = .after(limit)
  }

  /// Returns the time to wait before the next attempt, or `nil` if the last one was made.
  mutating func next() -> Duration? {
    let left = deadline - Tick.monotonicNow
    guard left > 0 else { return nil }
    defer { delay = min(2 * delay, 50_000_000) }
    return .nanoseconds(min(delay, left))
  }
}

extension MessagePort.Remote {
  /// Connects to a name, and waits for it if it does not exist yet.
  static func connect(
    to name: String, in directory: MessagePort.Directory, _ timeout: Duration, waitingFor limit: Duration
  ) throws(MessagePortError) -> MessagePort.Descriptor {
    var retries = Retries(for: limit)
    let never = Atomic<UInt32>(0)
    while true {
      do throws(MessagePortError) {
        return try connect(to: name, in: directory, timeout)
      } catch {
        guard case .noSuchPort = error, let delay = retries.next() else { throw error }
        never.futexWait(while: 0, until: .after(delay))
      }
    }
  }

  /// Connects to a named port, and waits for it if it does not exist yet, without blocking a thread.
  ///
  /// The parameters and errors are those of
  /// ``init(name:waitingFor:directory:maximumMessageSize:connectTimeout:accepts:undelivered:)``.
  ///
  /// - Throws: ``MessagePortError/cancelled`` if the task is cancelled while it is waiting.
  public static func connection(
    to name: String, waitingFor limit: Duration, directory: MessagePort.Directory = .user,
    maximumMessageSize: Int = 64 << 20, connectTimeout: Duration = .seconds(10),
    accepts: @Sendable (MessagePort.Credentials) -> Bool = { $0.isSameUser },
    undelivered: (@Sendable (MessagePort.Undelivered) -> Void)? = nil
  ) async throws(MessagePortError) -> MessagePort.Remote {
    var retries = Retries(for: limit)
    // Used while the port exists but has no room.
    var roomRetries: Retries?
    while true {
      do throws(MessagePortError) {
        return try MessagePort.Remote(
          name: name, directory: directory, maximumMessageSize: maximumMessageSize, connectTimeout: .zero,
          accepts: accepts, undelivered: undelivered)
      } catch {
        let delay: Duration?
        switch error {
        case .noSuchPort:
          roomRetries = nil
          delay = retries.next()
        case .sendTimedOut:
          var room = roomRetries ?? Retries(for: connectTimeout)
          delay = room.next()
          roomRetries = room
        default: throw error
        }
        guard let delay else { throw error }
        do { try await Task.sleep(for: delay) } catch { throw .cancelled }
      }
    }
  }
}
