// SPDX-License-Identifier: Apache-2.0

extension Duration {
  /// No limit that matters, for waits that end with what they wait for.
  ///
  /// A limit of so many seconds says how busy a machine may be: with a task on the other side, which comes when a
  /// thread of the pool is free, the time of all other tests. Whoever runs the tests has a limit for a wait that never
  /// ends.
  package static let unlimited: Duration = .seconds(1 << 30)
}
