// SPDX-License-Identifier: Apache-2.0

/// Does something, or says so, when nothing holds it any more.
package final class Token: Sendable {
  private let body: @Sendable () -> Void

  package init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  package convenience init(_ log: Log, _ entry: String = "released") {
    self.init { log.write(entry) }
  }

  /// Is there to be called from the closure that is to hold the token.
  package func touch() {}

  deinit { body() }
}
