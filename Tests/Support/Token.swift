// SPDX-License-Identifier: Apache-2.0

/// Runs a block when it is deallocated.
package final class Token: Sendable {
  private let body: @Sendable () -> Void

  package init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  package convenience init(_ log: Log, _ entry: String = "released") {
    self.init { log.write(entry) }
  }

  /// Does nothing; a closure calls it to capture the token.
  package func touch() {}

  deinit { body() }
}
