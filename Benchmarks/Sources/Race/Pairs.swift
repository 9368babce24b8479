// SPDX-License-Identifier: Apache-2.0

import CRace
import Glibc

/// W9: a thousand pairs of sockets, of which a hundred are active.
///
/// An event reads a byte and writes the next pair's. Measured in processor time, as nothing waits.
public final class Pairs: @unchecked Sendable {
  // Sendable: used by the loop's thread only, while it runs.
  /// The number of pairs.
  public static let count = 1000
  private static let active = 100
  private let descriptors: [Int32]
  private var toWrite: Int64 = 0
  private var toRead: Int64 = 0

  /// Creates the pairs.
  public init() {
    descriptors = Array(UnsafeBufferPointer(start: race_socket_pairs(Int32(Pairs.count)), count: 2 * Pairs.count))
  }

  /// Returns the watched end of a pair.
  public func descriptor(_ pair: Int) -> Int32 { descriptors[2 * pair] }

  private func write(_ pair: Int) {
    toWrite -= 1
    race_check(Glibc.write(descriptors[2 * pair + 1], "e", 1) == 1, "a byte did not fit")
  }

  /// Handles a ready descriptor; returns true after the last event.
  public func ready(_ pair: Int) -> Bool {
    var byte: UInt8 = 0
    race_check(read(descriptors[2 * pair], &byte, 1) == 1, "a descriptor was not ready")
    if toWrite > 0 { write((pair + 1) % Pairs.count) }
    toRead -= 1
    return toRead == 0
  }

  /// Makes `full` events with `run`, which returns after the last one of a round, and reports the time for each.
  public func race(_ full: Int64, run: () -> Void) {
    let count = race_scaled(full, 1000)
    _ = round(count / 20, run)
    race_report("event", Double(round(count, run)) / Double(count), "ns")
  }

  private func round(_ count: Int64, _ run: () -> Void) -> Int64 {
    toWrite = count
    toRead = count
    let before = race_cpu()
    for pair in stride(from: 0, to: Pairs.count, by: Pairs.count / Pairs.active) { write(pair) }
    run()
    return race_cpu() - before
  }
}
