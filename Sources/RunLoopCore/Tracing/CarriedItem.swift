// SPDX-License-Identifier: Apache-2.0

/// The kinds of things that keep a mode of a loop alive.
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

/// An item of a layer above that an item of this layer carries: the one that a user knows.
///
/// Every member can be used on any thread, under no locks but those that a call-out never holds.
package protocol CarriedItem: AnyObject, Sendable {
  var keepAliveKind: KeepAliveKind { get }
  /// The address of the user's function, or zero.
  var keepAliveCode: UInt64 { get }
  /// The text that distinguishes the item from others of its kind, for people.
  var keepAliveDetail: String { get }
  /// The object that the user knows, which several items of this layer may represent.
  var keepAliveIdentity: AnyObject { get }
  /// Where the item was made, if that says more than where it was added.
  var keepAlivePlace: AddedPlace? { get }
  /// Whether what is watched for the item is always ready, as a file is, and is not to be read.
  var isAlwaysReady: Bool { get }
}

extension CarriedItem {
  package var keepAliveCode: UInt64 { 0 }
  package var keepAliveIdentity: AnyObject { self }
  package var keepAlivePlace: AddedPlace? { nil }
  package var isAlwaysReady: Bool { false }
}

/// The function of a closure that is kept in a structure of its own, because generic storage would wrap it in a thunk.
///
/// - Parameter holder: A structure that contains a closure and nothing else.
package func codeAddress<Holder>(of holder: Holder) -> UInt64 {
  MemoryLayout<Holder>.size == 2 * MemoryLayout<UInt64>.size ? ClosureCode.first(of: holder) : 0
}
