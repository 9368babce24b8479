// SPDX-License-Identifier: Apache-2.0

/// The objects that other layers attach to a thread, one per type; the thread's lock guards them.
struct ThreadAttachments {
  private var objects: [ObjectIdentifier: any Sendable] = [:]

  func object<Object: AnyObject & Sendable>(_ type: Object.Type) -> Object? {
    objects[ObjectIdentifier(type)] as? Object
  }

  mutating func insert<Object: AnyObject & Sendable>(_ object: Object) {
    objects[ObjectIdentifier(Object.self)] = object
  }

  /// Removes all objects and returns them, so that the caller can release them after unlocking.
  mutating func removeAll() -> [any Sendable] {
    defer { objects = [:] }
    return Array(objects.values)
  }
}
