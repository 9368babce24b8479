// SPDX-License-Identifier: Apache-2.0

/// The kinds of items that keep a loop's mode alive.
package enum KeepAliveKind: String, Sendable, CaseIterable {
  case timer
  case source0
  case port
  case descriptor
  case signal
  case child
  case listener
  case files
  case mainQueue
  case block
  case perform
  case host
  case resident
}

/// A higher layer's item, known to the user, that is implemented by an item of this layer.
///
/// Every member can be used on any thread. The members take no lock that can be held during a call-out.
package protocol CarriedItem: AnyObject, Sendable {
  var keepAliveKind: KeepAliveKind { get }
  /// The address of the user's function, or zero.
  var keepAliveCode: UInt64 { get }
  /// A human-readable text that distinguishes the item from others of its kind.
  var keepAliveDetail: String { get }
  /// The object known to the user, which several items of this layer may represent.
  var keepAliveIdentity: AnyObject { get }
  /// Where the item was created, if that is more informative than where it was added.
  var keepAlivePlace: AddedPlace? { get }
  /// Whether the watched descriptor is always ready, like a regular file, so that it is not checked for unread data.
  var isAlwaysReady: Bool { get }
}

extension CarriedItem {
  package var keepAliveCode: UInt64 { 0 }
  package var keepAliveIdentity: AnyObject { self }
  package var keepAlivePlace: AddedPlace? { nil }
  package var isAlwaysReady: Bool { false }
}
