// SPDX-License-Identifier: Apache-2.0

/// Who sends a notification, as far as it matters to whether another is from the same.
enum Sender {
  case nobody
  case object(ObjectIdentifier)
  /// What has no identity is never the same.
  case value

  /// The sender of a notification that is held as long as this.
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

/// An optional that was put into an `Any`.
private protocol AnyOptional {
  var wrapped: Any? { get }
}

extension Optional: AnyOptional {
  fileprivate var wrapped: Any? { self }
}
