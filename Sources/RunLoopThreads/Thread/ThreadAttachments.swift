// SPDX-License-Identifier: Apache-2.0

/// The objects that other layers attach to a thread, one of each type: a value behind the thread's lock.
struct ThreadAttachments {
  private var objects: [ObjectIdentifier: any Sendable] = [:]

  func object<Object: AnyObject & Sendable>(_ type: Object.Type) -> Object? {
    objects[ObjectIdentifier(type)] as? Object
  }

  mutating func insert<Object: AnyObject & Sendable>(_ object: Object) {
    objects[ObjectIdentifier(Object.self)] = object
  }

  /// Takes all objects out, for the caller to release outside the lock.
  mutating func removeAll() -> [any Sendable] {
    defer { objects = [:] }
    return Array(objects.values)
  }
}
