// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The records that the queue has read for a source and that the source has not taken yet; guarded by the queue's lock.
final class WatchInbox: @unchecked Sendable {
  // Sendable: guarded by the queue's lock.

  /// The maximum number of pending records, which equals the kernel's limit for a queue.
  static let defaultLimit = 16_384

  /// Readable while there are records that another source has read.
  let descriptor: OwnedDescriptor
  /// The events that the source needs.
  let mask: UInt32
  private let limit: Int
  private(set) var records: [WatchRecord] = []
  /// The watches on the watched path, each with the names in its directory that lead there.
  var way: [Int32: Set<[UInt8]>] = [:]
  /// Whether the path has changed since the source last took its records.
  private(set) var hasPathChanged = false
  /// Whether the file at the path's last name has been closed after writing, since that name last changed.
  private(set) var isWritten = false
  /// Watches that the source has given up, with the number of records pending at that time.
  private var left: [Int32: Int] = [:]
  private var hasOverflowed = false
  private var isSignalled = false
  /// The error of reading the queue.
  var failure: SystemError?

  init(mask: UInt32, limit: Int) throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
    self.mask = mask | UInt32(IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW)
    self.limit = limit
  }

  var isEmpty: Bool { records.isEmpty && failure == nil && !hasPathChanged && !isWritten }

  /// Adds a record.
  ///
  /// A record beyond the limit becomes an overflow, and further ones are lost until the source takes that. A record
  /// that ends a watch is never lost. There is one for each watch.
  func add(_ record: WatchRecord) {
    guard record.mask & mask != 0 else { return }
    guard !hasOverflowed else {
      if record.has(IN_IGNORED) { records.append(record) }
      return
    }
    if records.count < limit { return records.append(record) }
    hasOverflowed = true
    records.append(WatchRecord(watch: -1, mask: UInt32(IN_Q_OVERFLOW), cookie: 0, name: []))
  }

  /// Handles a record of a watch on the path.
  func noteWay(_ record: WatchRecord) {
    guard !record.name.isEmpty else {
      if record.has(IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED) { notePathChange() }
      return
    }
    guard way[record.watch]?.contains(record.name) ?? false else { return }
    if record.has(IN_CREATE, IN_DELETE, IN_MOVED_FROM, IN_MOVED_TO) {
      notePathChange()
    } else if record.has(IN_CLOSE_WRITE) {
      isWritten = mask & UInt32(IN_CLOSE_WRITE) != 0
    }
  }

  func notePathChange() {
    hasPathChanged = true
    isWritten = false
  }

  /// Removes a watch and drops its pending records.
  ///
  /// If the source gets the watch again before it takes its records, the records in between are lost.
  func leave(_ watch: Int32) { if !records.isEmpty { left[watch] = records.count } }

  /// Wakes the loops of the source.
  func signal() {
    guard !isSignalled, !isEmpty else { return }
    isSignalled = true
    // The write cannot fail, because the counter never comes close to its maximum.
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(descriptor.number) }
  }

  func take() -> [WatchRecord] {
    if isSignalled {
      isSignalled = false
      _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(descriptor.number) }
    }
    hasOverflowed = false
    hasPathChanged = false
    isWritten = false
    defer {
      records = []
      left = [:]
    }
    guard !left.isEmpty else { return records }
    return zip(0..., records).filter { left[$1.watch, default: 0] <= $0 }.map(\.1)
  }
}
