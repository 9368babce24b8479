// SPDX-License-Identifier: Apache-2.0

/// What can be added to modes of run loops: timers, sources, observers and ports, and the sockets, message ports and
/// sources of system events of the modules beside this one.
///
/// One of your own is a ``RunLoop/Source``, or has one: only loops make the requests of this protocol, and only this
/// package can read them.
public protocol RunLoopItem: IdentityHashable, Sendable {
  /// Why an item cannot be added; `Never` for an item that needs nothing of the system.
  associatedtype Failure: Error = Never

  /// Enters or leaves a mode of a loop, or says whether it is in the mode; only an addition throws.
  func respond(to request: RunLoop.ItemRequest) throws(Failure) -> Bool
}

extension RunLoop {
  /// What a loop asks an item to do.
  public struct ItemRequest: Sendable {
    package enum Act {
      case add
      case remove
      case contains
    }

    package let act: Act
    package let loop: RunLoop
    package let mode: Mode
    /// Where the item was added, for the instruments.
    let site: UInt64
  }
}
