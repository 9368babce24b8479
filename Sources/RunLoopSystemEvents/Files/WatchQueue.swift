// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The kernel's queue of file changes, one for all sources of the process.
///
/// The kernel has few queues for each user. So the sources share one: each watch counts the sources that have it, and
/// whichever source finds the queue readable reads it and puts each record into the inboxes of those whose watch it is.
/// The queue is closed with its last source. In a child of a fork it is the parent's, and the sources are invalid.
final class WatchQueue: @unchecked Sendable {
  // Sendable: guarded by the lock.

  let descriptor: OwnedDescriptor
  private let lock = ProcessLock()
  /// The inboxes of each watch: mostly there is one.
  private var subscribers: [Int32: [WatchInbox]] = [:]
  /// The inboxes of each watch on the way to a path.
  private var wayfarers: [Int32: [WatchInbox]] = [:]
  private var inboxes: [WatchInbox] = []
  /// The last source has left: watches may remain, and the next source has another queue.
  private var isRetired = false
  /// How many times the queue was found empty.
  private var drains = 0
  /// The inboxes into which the read that goes on has put the first record.
  private var touched: [WatchInbox] = []

  init() throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.watchCreate.make { crl_watch_create() })
  }

  /// How many files are watched, apart from what lies on the way to them.
  var watchCount: Int { lock.withLock { subscribers.count } }
}

// MARK: - The queue that sources share

extension WatchQueue {
  private final class Shared: @unchecked Sendable {
    // Sendable: guarded by the lock.
    let lock = Lock()
    weak var queue: WatchQueue?
  }

  private static let ours = PerProcess { Shared() }

  /// Lets an inbox join the queue of the process, which is made if there is none.
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

  /// Lets an inbox join; false if the queue is being given up.
  func accept(_ inbox: WatchInbox) -> Bool {
    lock.withLock {
      guard !isRetired else { return false }
      inboxes.append(inbox)
      return true
    }
  }

  /// Lets an inbox leave, with its watches.
  func leave(_ inbox: WatchInbox, _ watches: [Int32]) {
    let isLast = lock.withLock {
      inboxes.removeAll { $0 === inbox }
      isRetired = inboxes.isEmpty
      return isRetired
    }
    // The watches of the last one end as the queue is closed.
    guard !isLast else { return }
    for watch in watches { remove(watch, inbox) }
    setWay([:], inbox)
  }
}

// MARK: - Watches

extension WatchQueue {
  /// Watches the file of a descriptor for an inbox; the same file again: the same watch.
  ///
  /// The kernel reports what any of its sources wants; the inbox takes its part.
  ///
  /// - Parameter path: The path by which a file was opened that may be no directory: without /proc it is watched by
  ///   that.
  func add(
    _ file: OwnedDescriptor, _ inbox: WatchInbox, path: FileChangeSource.Path? = nil
  ) throws(SystemError) -> Int32 {
    // One step: a watch that another source gives up in between would be a dead one.
    try lock.withLock { () throws(SystemError) in
      let watch = try SystemCall.watchAdd.make {
        guard let path else { return crl_placed_watch(descriptor.number, file.number, nil, inbox.mask) }
        return CText.answer(bytes: path.bytes) { crl_placed_watch(descriptor.number, file.number, $0, inbox.mask) }
      }
      if subscribers[watch]?.contains(where: { $0 === inbox }) != true { subscribers[watch, default: []].append(inbox) }
      return watch
    }
  }

  /// Ends the watch of an inbox, and the kernel's if it has no other and has not been ended already.
  func remove(_ watch: Int32, _ inbox: WatchInbox) {
    lock.withLock {
      inbox.leave(watch)
      take(inbox, from: \.subscribers, watch)
    }
  }

  /// Under the lock.
  private func take(
    _ inbox: WatchInbox, from lists: ReferenceWritableKeyPath<WatchQueue, [Int32: [WatchInbox]]>, _ watch: Int32
  ) {
    guard var left = self[keyPath: lists][watch] else { return }
    left.removeAll { $0 === inbox }
    self[keyPath: lists][watch] = left.isEmpty ? nil : left
    guard subscribers[watch] == nil, wayfarers[watch] == nil else { return }
    _ = try? SystemCall.watchRemove.make { crl_watch_remove(descriptor.number, watch) }
  }

  /// Watches a directory on the way to a path, for itself and, if there is one, for a name in it.
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

  /// Gives up what is no longer on the way of an inbox.
  func setWay(_ way: [Int32: Set<[UInt8]>], _ inbox: WatchInbox) {
    lock.withLock {
      for watch in inbox.way.keys where way[watch] == nil { take(inbox, from: \.wayfarers, watch) }
      inbox.way = way
    }
  }

  /// Lets a source look where its path leads.
  func notePathChange(_ inbox: WatchInbox) {
    lock.withLock {
      inbox.notePathChange()
      inbox.signal()
    }
  }
}

// MARK: - Reading

extension WatchQueue {
  /// How many bytes are read at once.
  private static let capacity = 32_768
  /// More than one record takes: after a read that left so much room the queue was empty.
  private static let largest = WatchRecord.headerSize + Int(NAME_MAX) + 1

  struct Taken {
    let records: [WatchRecord]
    /// How many times the queue had been found empty by then: all that happened before the last time has been taken.
    let drains: Int
    /// Whether the path may lead elsewhere.
    let hasPathChanged: Bool
    /// Whether the file at the path's last name has been closed after writing.
    let isWritten: Bool
  }

  /// How many times the queue has been found empty.
  var drainCount: Int { lock.withLock { drains } }

  /// Takes what waits for a source, or else reads some of the queue, without waiting.
  func take(for inbox: WatchInbox) throws(SystemError) -> Taken {
    try lock.withLock { () throws(SystemError) in
      if inbox.isEmpty { read(for: inbox) }
      let (hasPathChanged, isWritten) = (inbox.hasPathChanged, inbox.isWritten)
      let records = inbox.take()
      if records.isEmpty, let failure = inbox.failure { throw failure }
      return Taken(records: records, drains: drains, hasPathChanged: hasPathChanged, isWritten: isWritten)
    }
  }

  /// Under the lock.
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
      // The number is not used again for long: the kernel counts on.
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
