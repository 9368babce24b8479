// SPDX-License-Identifier: Apache-2.0

/// The reason a test server cannot support a protocol.
public enum HTTPTestServerError: Error, Hashable, Sendable {
  /// libnghttp2, which HTTP/2 needs, is missing or lacks a function; the value is the system's message.
  case libraryMissing(String)
}

extension HTTPTestServerError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .libraryMissing(let reason): "HTTP/2 cannot be served: \(reason)"
    }
  }
}
