// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// One thing that keeps a run of a loop from ending.
public struct KeepAliveReason: Sendable, Hashable, Codable {
  /// The kinds of reasons.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// A timer.
    case timer
    /// A source that is signalled by hand.
    case source0
    /// A port.
    case port
    /// A file descriptor that is waited for, a socket or a stream.
    case descriptor
    /// A source of signals.
    case signal
    /// A child process that is waited for.
    case child
    /// A socket that accepts connections.
    case listener
    /// A source of file changes.
    case files
    /// The main dispatch queue, which the main loop serves.
    case mainQueue
    /// A block or a task's job that waits.
    case block
    /// The source of work that is handed to the thread, or such work that waits.
    case perform
    /// The loop of another library in which the loop waits.
    case host
    /// The loop is a resident thread's, which lives until it is stopped.
    case resident
  }

  /// The kind of the reason.
  public let kind: Kind
  /// The item's address, which descriptions print too; nil if it is not an object.
  public let item: UInt64?
  /// The modes of the loop that it is in, by their raw values.
  public let modes: [String]
  /// The function that will be called; nil if that is not known.
  public let code: CodeAddress?
  /// The code that added the item: the callers, the innermost first, of which the first few are of this package.
  ///
  /// Empty if the loops were not watched then.
  public let addedAt: [CodeAddress]
  /// The text that distinguishes the item from others of its kind, for people.
  public let detail: String

  init(_ item: KeptItem) {
    kind = Kind(rawValue: item.kind.rawValue) ?? .source0
    self.item = item.item == 0 ? nil : item.item
    modes = item.modes.map(\.rawValue)
    code = item.code == 0 ? nil : CodeAddress(item.code)
    addedAt = item.added.map(CodeAddress.init)
    detail = item.detail
  }
}

extension CodeAddress {
  /// Asks the dynamic linker of this process.
  init(_ address: UInt64) {
    var found = crl_code()
    if crl_code_find(address, &found) != 0, let path = found.path {
      self.init(address: address, image: String(cString: path), offset: address - found.base)
    } else {
      self.init(address: address)
    }
  }
}

extension Instruments {
  /// The reasons that keep the innermost run of a loop from ending; empty if no run is active.
  ///
  /// The place where an item was added is known from the level ``Level/watch`` on. Items that the loop needs for itself
  /// are not listed. Can be called from any thread: the loop waits for its table while the items of its mode are
  /// copied, and for nothing else.
  ///
  /// - Complexity: O(n m) in the items of the mode and the modes of the loop.
  public static func reasons(keeping loop: RunLoop) -> [KeepAliveReason] { loop.keptItems.map(KeepAliveReason.init) }
}
