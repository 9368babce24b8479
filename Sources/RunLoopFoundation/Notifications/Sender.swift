// SPDX-License-Identifier: Apache-2.0

/// The identity of a notification's sender, for comparisons.
enum Sender {
  case nobody
  case object(ObjectIdentifier)
  /// A value without an identity, which matches nothing.
  case value

  /// Creates the identity of a sender, valid as long as its notification is retained.
  init(_ object: Any?) {
    guard let object else {
      self = .nobody
      return
    }
    if type(of: object) is AnyClass {
      self = .object(ObjectIdentifier(object as AnyObject))
    } else if let optional = object as? any AnyOptional {
      self.init(optional.wrapped)
    } else {
      self = .value
    }
  }

  func isSame(as other: Sender) -> Bool {
    switch (self, other) {
    case (.nobody, .nobody): true
    case (.object(let one), .object(let other)): one == other
    default: false
    }
  }
}

private protocol AnyOptional {
  var wrapped: Any? { get }
}

extension Optional: AnyOptional {
  fileprivate var wrapped: Any? { self }
}
