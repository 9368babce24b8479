// SPDX-License-Identifier: Apache-2.0

/// The number of datagrams to receive in one service of a socket, as a value.
///
/// Finding out that nothing more has arrived takes a futile receive, which costs as much as a small datagram. A
/// service that has received as many datagrams as the previous one therefore stops, because the next wait asks the
/// system anyway. From time to time it tries nevertheless, and receives more if the rate has increased.
struct DatagramBatch: Hashable {
  /// The maximum number of datagrams per service before the loop serves other items.
  static let most = DatagramBurst.most
  /// The maximum number of consecutive services that stop at the expected number.
  static let mostTrusted = 16

  /// The number of datagrams found by the last service that received until the socket was empty, at least one.
  private(set) var expected = 1
  /// The number of consecutive services that stop at the expected number; `trustedCount` is how many are left.
  private var trust = 1
  private var trustedCount = 0

  /// Whether enough datagrams are expected to receive them all with one system call, which also shows whether there
  /// are more.
  var isBurst: Bool { expected >= DatagramBatch.leastBurst }
  static let leastBurst = 4

  /// The maximum number of datagrams for the next service.
  var limit: Int { trustedCount > 0 ? expected : DatagramBatch.most }

  /// Records a service.
  ///
  /// - Parameters:
  ///   - count: The number of datagrams received.
  ///   - isEmpty: Whether the system has reported that nothing more has arrived.
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
