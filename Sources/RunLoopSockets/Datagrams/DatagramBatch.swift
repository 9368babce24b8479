// SPDX-License-Identifier: Apache-2.0

/// How many datagrams a service of a socket takes, as a value.
///
/// That nothing more has arrived is learned by a receive for nothing, which costs as much as a small datagram. So a
/// service that has taken as many as the one before leaves it to the coming wait to find more, as the wait asks the
/// system anyway. Now and then it asks nevertheless: where more arrives than before, it takes more.
struct DatagramBatch: Hashable {
  /// How many a service takes at most before the loop looks at something else.
  static let most = DatagramBurst.most
  /// How many services in a row may go without asking.
  static let mostTrusted = 16

  /// How many the last service that has asked has found, one at least.
  private(set) var expected = 1
  /// For how many services in a row the expectation is trusted, and for how many more.
  private var trust = 1
  private var trustedCount = 0

  /// Whether so many are expected that one system call for all pays, which then also says when there are no more.
  var isBurst: Bool { expected >= DatagramBatch.leastBurst }
  static let leastBurst = 4

  /// How many the coming service takes at most.
  var limit: Int { trustedCount > 0 ? expected : DatagramBatch.most }

  /// Notes a service.
  ///
  /// - Parameters:
  ///   - count: How many it has taken.
  ///   - isEmpty: Whether the system has said that there is nothing more.
  mutating func noteService(count: Int, isEmpty: Bool) {
    if isEmpty {
      trust = count == expected ? min(2 * trust, DatagramBatch.mostTrusted) : 1
      (expected, trustedCount) = (max(1, count), trust)
    } else if trustedCount > 0 {
      trustedCount -= 1
    } else {
      (expected, trust) = (max(1, count), 1)
    }
  }
}
