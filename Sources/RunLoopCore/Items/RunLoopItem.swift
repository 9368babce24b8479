// SPDX-License-Identifier: Apache-2.0

/// An item that can be added to modes of run loops.
///
/// Timers, sources, observers and ports are items, as are the sockets, message ports and system event sources of the
/// other modules. Custom items are or contain a ``RunLoop/Source``: only loops make the requests of this protocol, and
/// only this package can read them.
public protocol RunLoopItem: IdentityHashable, Sendable {
  /// The error thrown when an item cannot be added; `Never` for an item that needs no system resources.
  associatedtype Failure: Error = Never

  /// Adds the item to a mode, removes it, or returns whether it is in the mode; only adding can throw.
  func respond(to request: RunLoop.ItemRequest) throws(Failure) -> Bool
}

extension RunLoop {
  /// A loop's request to an item.
  public struct ItemRequest: Sendable {
    package enum Act {
      case add
      case remove
      case contains
    }

    package let act: Act
    package let loop: RunLoop
    package let mode: Mode
    /// The call site that adds the item, for the instruments.
    let site: UInt64
  }
}
