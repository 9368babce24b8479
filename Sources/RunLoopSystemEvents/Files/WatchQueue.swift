// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The kernel's queue of file changes, shared by all sources of the process.
///
/// The kernel limits the number of queues per user, so sources share one. Each watch has a list of the sources that
/// use it, and the source that finds the queue readable reads it and distributes the records to the sources' inboxes.
/// The queue is closed with its last source. In a forked child, it belongs to the parent, and the sources are invalid.
final class WatchQueue: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  let descriptor: OwnedDescriptor
  private let lock = ProcessLock()
  /// The inboxes of each watch, usually one.
  private var subscribers: [Int32: [WatchInbox]] = [:]
  /// The inboxes of each watch on the way to a path.
  private var wayfarers: [Int32: [WatchInbox]] = [:]
  private var inboxes: [WatchInbox] = []
  /// Whether the last source has left, so that the next one uses another queue although watches may remain.
  private var isRetired = false
  /// The number of times the queue was found empty.
  private var drains = 0
  /// The inboxes in which the current read has put a first record.
  private var touched: [WatchInbox] = []

  init() throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.watchCreate.make { crl_watch_create() })
  }

  var watchCount: Int { lock.withLock { subscribers.count } }
}

// MARK: - The shared queue

extension WatchQueue {
  private final class Shared: @unchecked Sendable {
    // Sendable: the lock guards all mutable state.
    let lock = Lock()
    weak var queue: WatchQueue?
  }

  private static let ours = PerProcess { Shared() }

  /// Adds an inbox to the queue of the process, which is created if necessary.
  static func join(_ inbox: WatchInbox) throws(SystemError) -> WatchQueue {
    let shared = ours.value
    return try shared.lock.withLock { () throws(SystemError) in
      if let queue = shared.queue, queue.accept(inbox) { return queue }
      let queue = try WatchQueue()
      _ = queue.accept(inbox)
      shared.queue = queue
      return queue
    }
  }

  /// Adds an inbox, or returns false if the queue has been retired.
  func accept(_ inbox: WatchInbox) -> Bool {
    lock.withLock {
      guard !isRetired else { return false }
      inboxes.append(inbox)
      return true
    }
  }

  func leave(_ inbox: WatchInbox, _ watches: [Int32]) {
    let isLast = lock.withLock {
      inboxes.removeAll { $0 === inbox }
      isRetired = inboxes.isEmpty
      return isRetired
    }
    // The last inbox's watches end when the queue is closed.
    guard !isLast else { return }
    for watch in watches { remove(watch, inbox) }
    setWay([:], inbox)
  }
}

// MARK: - Watches

extension WatchQueue {
  /// Watches the file of a descriptor for an inbox.
  ///
  /// The same file always gets the same watch. The kernel reports the events that any source of the watch needs, and
  /// each inbox filters them.
  ///
  /// - Parameter path: The path by which the file was opened, if it may be a file other than a directory. Without
  ///   /proc, it is used to add the watch.
  func add(
    _ file: OwnedDescriptor, _ inbox: WatchInbox, path: FileChangeSource.Path? = nil
  ) throws(SystemError) -> Int32 {
    // Add and register in one step, so that another source cannot give the watch up in between.
    try lock.withLock { () throws(SystemError) in
      let watch = try SystemCall.watchAdd.make {
        guard let path else { return crl_placed_watch(descriptor.number, file.number, nil, inbox.mask) }
        return CText.answer(bytes: path.bytes) { crl_placed_watch(descriptor.number, file.number, $0, inbox.mask) }
      }
      if subscribers[watch]?.contains(where: { $0 === inbox }) != true { subscribers[watch, default: []].append(inbox) }
      return watch
    }
  }

  /// Ends an inbox's use of a watch, and the watch itself if it has no other users and has not already ended.
  func remove(_ watch: Int32, _ inbox: WatchInbox) {
    lock.withLock {
      inbox.leave(watch)
      take(inbox, from: \.subscribers, watch)
    }
  }

  /// Requires the lock.
  private func take(
    _ inbox: WatchInbox, from lists: ReferenceWritableKeyPath<WatchQueue, [Int32: [WatchInbox]]>, _ watch: Int32
  ) {
    guard var left = self[keyPath: lists][watch] else { return }
    left.removeAll { $0 === inbox }
    self[keyPath: lists][watch] = left.isEmpty ? nil : left
    guard subscribers[watch] == nil, wayfarers[watch] == nil else { return }
    _ = try? SystemCall.watchRemove.make { crl_watch_remove(descriptor.number, watch) }
  }

  /// Watches a directory on the way to a path, and optionally a name in it.
  func addWay(_ directory: OwnedDescriptor, _ inbox: WatchInbox, name: [UInt8]?) throws(SystemError) -> Int32 {
    try lock.withLock { () throws(SystemError) in
      var mask = UInt32(IN_MOVE_SELF | IN_DELETE_SELF)
      if name != nil {
        mask |= UInt32(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) | (inbox.mask & UInt32(IN_CLOSE_WRITE))
      }
      let watch = try SystemCall.watchAdd.make { crl_placed_watch(descriptor.number, directory.number, nil, mask) }
      inbox.way[watch, default: []].formUnion(name.map { [$0] } ?? [])
      if wayfarers[watch]?.contains(where: { $0 === inbox }) != true { wayfarers[watch, default: []].append(inbox) }
      return watch
    }
  }

  /// Removes an inbox's watches that are no longer on its path.
  func setWay(_ way: [Int32: Set<[UInt8]>], _ inbox: WatchInbox) {
    lock.withLock {
      for watch in inbox.way.keys where way[watch] == nil { take(inbox, from: \.wayfarers, watch) }
      inbox.way = way
    }
  }

  /// Makes a source look up its path again.
  func notePathChange(_ inbox: WatchInbox) {
    lock.withLock {
      inbox.notePathChange()
      inbox.signal()
    }
  }
}

// MARK: - Reading

extension WatchQueue {
  /// The size of a read in bytes.
  private static let capacity = 32_768
  /// The maximum size of a record; a read that leaves this much room has emptied the queue.
  private static let largest = WatchRecord.headerSize + Int(NAME_MAX) + 1

  struct Taken {
    let records: [WatchRecord]
    /// How often the queue had been found empty; everything before the last time has been taken.
    let drains: Int
    /// Whether the path may lead to another file.
    let hasPathChanged: Bool
    /// Whether the file at the path's last name has been closed after writing.
    let isWritten: Bool
  }

  /// The number of times the queue was found empty.
  var drainCount: Int { lock.withLock { drains } }

  /// Returns a source's pending records, or else reads part of the queue, without blocking.
  func take(for inbox: WatchInbox) throws(SystemError) -> Taken {
    try lock.withLock { () throws(SystemError) in
      if inbox.isEmpty { read(for: inbox) }
      let (hasPathChanged, isWritten) = (inbox.hasPathChanged, inbox.isWritten)
      let records = inbox.take()
      if records.isEmpty, let failure = inbox.failure { throw failure }
      return Taken(records: records, drains: drains, hasPathChanged: hasPathChanged, isWritten: isWritten)
    }
  }

  /// Requires the lock.
  private func read(for reader: WatchInbox) {
    withUnsafeTemporaryAllocation(byteCount: Self.capacity, alignment: 8) { buffer in
      do throws(SystemError) {
        let count = Int(
          try SystemCall.watchRead.makeUninterrupted { crl_read(descriptor.number, buffer.baseAddress, buffer.count) })
        WatchRecord.forEach(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]), distribute)
        if count + Self.largest <= Self.capacity { drains += 1 }
      } catch {
        guard error.number != EAGAIN else { return drains += 1 }
        for inbox in inboxes { inbox.failure = error }
        touched = inboxes
      }
    }
    for inbox in touched where inbox !== reader { inbox.signal() }
    touched = []
  }

  private func distribute(_ record: WatchRecord) {
    if record.has(IN_Q_OVERFLOW) {
      for inbox in inboxes { deliver(record, inbox) }
    } else {
      if let found = subscribers[record.watch] { for inbox in found { deliver(record, inbox) } }
      if let found = wayfarers[record.watch] {
        for inbox in found {
          if inbox.isEmpty { touched.append(inbox) }
          inbox.noteWay(record)
        }
      }
      // The kernel does not reuse the number soon, because it counts up.
      if record.has(IN_IGNORED) {
        subscribers[record.watch] = nil
        wayfarers[record.watch] = nil
      }
    }
  }

  private func deliver(_ record: WatchRecord, _ inbox: WatchInbox) {
    if inbox.isEmpty { touched.append(inbox) }
    inbox.add(record)
  }
}
