// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// What the queue has read for one source and the source has not taken yet.
///
/// Guarded by the lock of the queue.
final class WatchInbox: @unchecked Sendable {
  // Sendable: guarded by the lock of the queue.

  /// How many records wait at most: as many as the kernel keeps in a queue.
  static let defaultLimit = 16_384

  /// Readable while there is something that another source has read.
  let descriptor: OwnedDescriptor
  /// What the source is interested in.
  let mask: UInt32
  private let limit: Int
  private(set) var records: [WatchRecord] = []
  /// The watches on the way to the watched path, each with the names in its directory that lead there.
  var way: [Int32: Set<[UInt8]>] = [:]
  /// Whether something has happened on the way since the source last took what there was.
  private(set) var hasPathChanged = false
  /// Whether the file at the path's last name has been closed after writing, since that name last changed.
  private(set) var isWritten = false
  /// Watches that the source has given up, and how many records there were by then.
  private var left: [Int32: Int] = [:]
  private var hasOverflowed = false
  private var isSignalled = false
  /// Why the queue cannot be read any more.
  var failure: SystemError?

  init(mask: UInt32, limit: Int) throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
    self.mask = mask | UInt32(IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW)
    self.limit = limit
  }

  var isEmpty: Bool { records.isEmpty && failure == nil && !hasPathChanged && !isWritten }

  /// Adds a record; one too many becomes an overflow, and what follows is lost until the source has taken that.
  ///
  /// A record that ends a watch is never lost. There is one for each watch.
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

  /// Takes a record of a watch on the way.
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

  /// The source gives up a watch: what waits of it is dropped.
  ///
  /// If it has the watch again by the time it takes what waits, what happened in between is not there.
  func leave(_ watch: Int32) { if !records.isEmpty { left[watch] = records.count } }

  /// Wakes the loops of the source.
  func signal() {
    guard !isSignalled, !isEmpty else { return }
    isSignalled = true
    // The write cannot fail: the counter would have to be near its end.
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(descriptor.number) }
  }

  /// Takes what there is.
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
