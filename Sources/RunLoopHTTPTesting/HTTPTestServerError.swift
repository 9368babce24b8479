// SPDX-License-Identifier: Apache-2.0

/// The reason why a test server cannot speak a protocol.
public enum HTTPTestServerError: Error, Hashable, Sendable {
  /// libnghttp2, which HTTP/2 needs, is missing or lacks a function; with the system's reason.
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
