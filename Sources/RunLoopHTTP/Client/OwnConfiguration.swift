// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// A configuration shared by several transfers, with derived values.
final class OwnConfiguration: Sendable {
  let value: HTTP.Configuration
  /// The idle timeout in nanoseconds.
  let idle: Int64?
  /// The connection wait timeout in nanoseconds.
  let connectionWait: Int64?
  let hasSendableUserAgent: Bool
  let overrides: HostOverrides
  /// A key that connections must share to be reusable for this configuration; nil if libcurl compares everything
  /// itself.
  let sharingKey: String?
  // Relaxed, because only the uniqueness of each number matters.
  private static let lastNumber = Atomic<Int>(0)
  private let usual = AtomicLazyReference<Fields>()

  private final class Fields: Sendable {
    let list: [HTTP.Headers.Field]

    init(_ list: [HTTP.Headers.Field]) { self.list = list }
  }

  init(_ value: HTTP.Configuration) {
    self.value = value
    idle = value.idleTimeout.map { Int64(saturating: $0) }
    connectionWait = value.connectionWaitTimeout.map { Int64(saturating: $0) }
    overrides = HostOverrides(value.hostOverrides)
    sharingKey = value.trust.sharingKey(
      orElse: "#\(Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue)")
    hasSendableUserAgent = HTTP.Headers.isValue(value.userAgent)
  }

  /// The headers sent for a request without headers of its own.
  ///
  /// Computed on first use, because finding the supported content codings means loading libraries.
  var usualFields: [HTTP.Headers.Field] {
    if let made = usual.load() { return made.list }
    let own = [HTTP.Headers.Field("User-Agent", value.userAgent), Self.accept]
    return usual.storeIfNil(Fields(own + (ContentCoding.field.map { [$0] } ?? []))).list
  }

  static let accept = HTTP.Headers.Field("Accept", "*/*")
}
