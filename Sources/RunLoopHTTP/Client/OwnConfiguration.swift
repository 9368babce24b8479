// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// A configuration that several transfers share.
final class OwnConfiguration: Sendable {
  let value: HTTP.Configuration
  /// The idle timeout in nanoseconds.
  let idle: Int64?
  /// For how many nanoseconds a connection is waited for.
  let connectionWait: Int64?
  let hasSendableUserAgent: Bool
  let overrides: HostOverrides
  /// What those have in common who may use its encrypted connections, where that is decided here.
  let sharingKey: String?
  // Relaxed: each number is given once.
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

  /// What is sent for a request without fields of its own.
  ///
  /// Made when it is first asked for: which codings can be decoded is found out by opening libraries.
  var usualFields: [HTTP.Headers.Field] {
    if let made = usual.load() { return made.list }
    let own = [HTTP.Headers.Field("User-Agent", value.userAgent), Self.accept]
    return usual.storeIfNil(Fields(own + (ContentCoding.field.map { [$0] } ?? []))).list
  }

  static let accept = HTTP.Headers.Field("Accept", "*/*")
}
