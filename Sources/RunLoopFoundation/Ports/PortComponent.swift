// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

public import class RunLoopCore.Port

extension Port.Message.Component {
  /// Creates a part from data, which is not copied.
  public static func data(_ data: Data) -> Self { .value(data) }

  /// The bytes of the part, whether it was sent as bytes, as `Data` or as `NSData`.
  ///
  /// - Complexity: O(1) for `Data`, which is not copied, and O(*n*) otherwise.
  public var data: Data? {
    switch self {
    case .bytes(let bytes): Data(bytes)
    case .value(let data as Data): data
    case .value(let data as FrozenData): data.object as Data
    case .port, .value: nil
    }
  }
}

// MARK: - Foundation's parts: objects, or values that a Foundation collection bridges from them
extension Port.Message.Component {
  init?(object: AnyObject) {
    switch object {
    case let port as Port: self = .port(port)
    case let data as NSData: self = .value(FrozenData(data))
    default: return nil
    }
  }

  init?(value: Any) {
    switch value {
    case let port as Port: self = .port(port)
    case let bytes as [UInt8]: self = .bytes(bytes)
    case let data as Data: self = .value(data)
    default: return nil
    }
  }

  var object: AnyObject {
    switch self {
    case .bytes(let bytes): Data(bytes) as NSData
    case .port(let port): port
    case .value(let data as FrozenData): data.object
    case .value(let data as Data): data as NSData
    case .value(let value): value as AnyObject
    }
  }
}

extension Port.Message {
  /// Converts the parts of a message, or reports and returns nil if one is of an unsupported kind.
  static func parts<Objects: Sequence>(
    _ objects: Objects, _ part: (Objects.Element) -> Component?
  ) -> [Component]? {
    var parts: [Component] = []
    for object in objects {
      guard let part = part(object) else {
        Diagnostic.portComponent.report(
          "a message with a part of type \(type(of: object as Any)) was not sent: parts are data and ports")
        return nil
      }
      parts.append(part)
    }
    return parts
  }
}

struct FrozenData: @unchecked Sendable {
  // Sendable: copying an immutable object returns it unchanged, and copying a mutable one creates an object that
  // nothing else references.
  let object: NSData

  init(_ data: NSData) {
    object = data.copy() as? NSData ?? NSData(data: data as Data)
  }
}
