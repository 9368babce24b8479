// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// An item that keeps a run of a loop from ending.
public struct KeepAliveReason: Sendable, Hashable, Codable {
  /// The kinds of items.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// A timer.
    case timer
    /// A manually signaled source.
    case source0
    /// A port.
    case port
    /// A file descriptor, socket or stream.
    case descriptor
    /// A source of signals.
    case signal
    /// A child process that the loop waits for.
    case child
    /// A socket that accepts connections.
    case listener
    /// A source of file changes.
    case files
    /// The main dispatch queue, which the main loop serves.
    case mainQueue
    /// A pending block or job of a task.
    case block
    /// The source for work posted to the thread, or such work that is pending.
    case perform
    /// The loop of another library that waits on behalf of this loop.
    case host
    /// A resident thread, which runs until it is stopped.
    case resident
  }

  /// The kind of the item.
  public let kind: Kind
  /// The address of the item, as printed in descriptions, or nil if it is not an object.
  public let item: UInt64?
  /// The raw values of the loop's modes that contain the item.
  public let modes: [String]
  /// The function that the item calls, or nil if it is unknown.
  public let code: CodeAddress?
  /// The call stack that added the item, innermost first.
  ///
  /// The first few frames belong to this package.
  ///
  /// Empty if the loops were not watched at that time.
  public let addedAt: [CodeAddress]
  /// A human-readable description that distinguishes the item from others of its kind.
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
  /// Looks up an address with the dynamic linker of this process.
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
  /// Returns the items that keep the innermost run of a loop from ending, or an empty array if no run is active.
  ///
  /// The place that added an item is known at the level ``Level/watch`` and above. Internal items of the loop are not
  /// listed. Can be called from any thread. The loop can be blocked only while the items of its mode are copied.
  ///
  /// - Complexity: O(n m), where n is the number of items in the mode and m the number of modes.
  public static func reasons(keeping loop: RunLoop) -> [KeepAliveReason] { loop.keptItems.map(KeepAliveReason.init) }
}
