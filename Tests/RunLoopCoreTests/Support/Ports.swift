// SPDX-License-Identifier: Apache-2.0

@testable import RunLoopCore

extension Port {
  /// Sends a message that must be accepted.
  func post(_ id: Int) {
    let outcome = trySend(id)
    precondition(outcome == "sent", outcome)
  }

  /// Sends a message and returns the outcome in one word.
  func trySend(_ id: Int, deadline: SuspendingClock.Instant? = nil) -> String {
    do {
      try send(.init(id: UInt32(id)), deadline: deadline)
      return "sent"
    } catch {
      return switch error {
      case .invalid: "invalid"
      case .queueFull(let limit): "queueFull(limit:\(limit))"
      case .timedOut(let limit): "timedOut(limit:\(limit))"
      }
    }
  }
}

extension RunLoop {
  /// Adds a port that sends itself the next message whenever it receives one, so it has one in every turn.
  func endlessPort(_ body: @escaping @Sendable () -> Void) {
    let port = Port { port, _ in
      port.post(1)
      body()
    }
    port.post(1)
    add(port, forMode: .default)
  }
}

extension SuspendingClock.Instant {
  /// A deadline that should never be reached.
  static var farFuture: Self { SystemWaiter.shared.now.instant.advanced(by: .seconds(3600)) }
}
