// SPDX-License-Identifier: Apache-2.0

extension Duration {
  /// A practically infinite limit for waits that end with an event.
  ///
  /// A limit in seconds would depend on the machine's load: the task on the other side needs a free thread of the
  /// pool and competes with all other tests. The test run has a limit of its own for a wait that never ends.
  package static let unlimited: Duration = .seconds(1 << 30)
}
