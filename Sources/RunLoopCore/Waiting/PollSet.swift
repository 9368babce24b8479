// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import Synchronization

/// The descriptors that one mode watches: an epoll set in which the interests of all sources of a descriptor are
/// merged.
///
/// The set exists while its mode watches a descriptor or the loop's thread waits in it.
final class PollSet: @unchecked Sendable {
  // Sendable: the loop's table lock guards the variables that a change of the watches uses. Only the loop's thread
  // replaces `epoll`, and reads it without the lock; other threads read it with the lock held or while the loop sleeps.
  // The results of a wait are used only on the loop's thread.

  /// A descriptor that a wait found to be ready.
  struct Ready {
    let descriptor: Int32
    let serial: UInt32
    let events: RunLoop.DescriptorSource.Events
    /// Whether the peer has stopped writing, which is reported only to sources that observe hang-ups.
    let isHalfClosed: Bool

    @inline(__always)
    init(_ event: epoll_event) {
      descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: event.data.u64))
      serial = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
      events = .init(epollBits: event.events)
      isHalfClosed = event.events & EPOLLRDHUP.rawValue != 0
    }
  }

  /// A source whose turn it is, and the events to notify it of.
  typealias Turn = (source: RunLoop.DescriptorSource, events: RunLoop.DescriptorSource.Events)

  private enum Token {
    static let wake = UInt64.max
    static let mainQueue = UInt64.max - 1
    static let otherLoop = UInt64.max - 2
  }

  /// The maximum number of events that one wait takes from the kernel.
  private static let batch = 64

  let wakeDescriptor: WakeDescriptor
  @exclusivity(unchecked) private var epoll: OwnedDescriptor
  /// The kernel's set, which a gate watches; ``prepareToWait(servingMainQueue:)`` may replace it.
  var descriptor: OwnedDescriptor { epoll }
  @exclusivity(unchecked) private var mainQueueHandle: Int32?
  /// A descriptor that becomes readable when another library's loop on the same thread has work.
  @exclusivity(unchecked) private var otherLoop: Int32?
  @exclusivity(unchecked) private var watches = WatchTable()
  @exclusivity(unchecked) private var lastSerial: UInt32 = 0
  /// The number of descriptors removed so far, and the number removed before the last wait began.
  @exclusivity(unchecked) private var departures = 0
  @exclusivity(unchecked) private var departuresBeforeWait = 0
  /// Whether events without a watch arrived, because a descriptor was closed while a duplicate of it is still open.
  @exclusivity(unchecked) private var hasStrayEvents = false

  /// The events that the last wait found, in the kernel's order.
  private let buffer: UnsafeMutablePointer<epoll_event>
  @exclusivity(unchecked) private var foundCount = 0
  /// The number of events of the batch that have been taken, and the index in the buffer of the first one.
  @exclusivity(unchecked) private var takenCount = 0
  @exclusivity(unchecked) private var start = 0
  /// Whether the previous batch was not served completely, so that this one begins with the descriptor that has waited
  /// longest.
  @exclusivity(unchecked) private var isUnfair = false
  @exclusivity(unchecked) private var services: UInt64 = 0
  @exclusivity(unchecked) private var waits: UInt64 = 0
  /// Whether the last descriptor taken has been ready so often that its handler may not be reading from it.
  @exclusivity(unchecked) private(set) var isSuspect = false
  /// Whether the first entry that the last wait found was an event rather than the loop's own counter.
  ///
  /// The kernel reports entries in the order in which they became ready, as none was ready when the wait began.
  @exclusivity(unchecked) private(set) var beganWithEvent = false
  /// Whether the main dispatch queue has work.
  @exclusivity(unchecked) var isMainQueueReady = false
  /// Whether the other library's loop has work.
  @exclusivity(unchecked) private(set) var isOtherLoopReady = false
  /// Whether the main dispatch queue ends the prepared wait; a run within a block of that queue leaves the queue's
  /// notification to the outer run.
  @exclusivity(unchecked) private var servesMainQueue = false

  init(wakeDescriptor: WakeDescriptor) throws(SystemError) {
    self.wakeDescriptor = wakeDescriptor
    epoll = try PollSet.makeEpoll(wakeDescriptor, mainQueueHandle: nil, otherLoop: nil)
    // Allocated last, because `deinit` does not run if the initializer throws earlier.
    buffer = .allocate(capacity: PollSet.batch)
  }

  deinit {
    buffer.deallocate()
  }

  private static func makeEpoll(
    _ wakeDescriptor: WakeDescriptor, mainQueueHandle: Int32?, otherLoop: Int32?
  ) throws(SystemError) -> OwnedDescriptor {
    let epoll = OwnedDescriptor(try SystemCall.epollCreate.make { crl_epoll_create() })
    try control(epoll, EPOLL_CTL_ADD, wakeDescriptor.descriptor.number, counterEvents, Token.wake)
    if let mainQueueHandle { try control(epoll, EPOLL_CTL_ADD, mainQueueHandle, counterEvents, Token.mainQueue) }
    if let otherLoop { try control(epoll, EPOLL_CTL_ADD, otherLoop, counterEvents, Token.otherLoop) }
    return epoll
  }

  /// Edge-triggered: each write causes one event, so a counter does not have to be read to become quiet.
  private static let counterEvents = EPOLLIN.rawValue | EPOLLET.rawValue

  private static func control(
    _ epoll: OwnedDescriptor, _ operation: Int32, _ descriptor: Int32, _ events: UInt32, _ data: UInt64
  ) throws(SystemError) {
    _ = try SystemCall.epollControl.make { crl_epoll_control(epoll.number, operation, descriptor, events, data) }
  }
}

// Watching descriptors. Requires the loop's table lock.
extension PollSet {
  /// Whether nothing is watched.
  var isEmpty: Bool { watches.isEmpty && mainQueueHandle == nil && otherLoop == nil }

  /// Adds the main dispatch queue to the set.
  func watchMainQueue(_ handle: Int32) throws(SystemError) {
    guard mainQueueHandle == nil else { return }
    try PollSet.control(epoll, EPOLL_CTL_ADD, handle, PollSet.counterEvents, Token.mainQueue)
    mainQueueHandle = handle
  }

  /// Removes the main dispatch queue from the set.
  func forgetMainQueue() {
    guard let handle = mainQueueHandle else { return }
    try? PollSet.control(epoll, EPOLL_CTL_DEL, handle, 0, 0)
    mainQueueHandle = nil
    isMainQueueReady = false
  }

  /// Adds another library's loop to the set.
  func watchOtherLoop(_ descriptor: Int32) throws(SystemError) {
    guard otherLoop == nil else { return }
    try PollSet.control(epoll, EPOLL_CTL_ADD, descriptor, PollSet.counterEvents, Token.otherLoop)
    otherLoop = descriptor
  }

  /// Removes the other library's loop from the set.
  func forgetOtherLoop() {
    guard let descriptor = otherLoop else { return }
    try? PollSet.control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0)
    otherLoop = nil
    isOtherLoopReady = false
  }

  func insert(_ membership: Membership<RunLoop.DescriptorSource>) throws(SystemError) {
    let descriptor = membership.item.descriptor
    if let watch = watches[descriptor] {
      watch.sources.append(membership)
      do throws(SystemError) {
        try apply(watch, descriptor)
      } catch {
        watch.sources.removeLast()
        throw error
      }
    } else {
      lastSerial &+= 1
      let watch = Watch(serial: lastSerial, membership)
      try apply(watch, descriptor)
      watches[descriptor] = watch
    }
  }

  /// Applies a change of the events that a source waits for.
  func refresh(_ membership: Membership<RunLoop.DescriptorSource>) throws(SystemError) {
    let descriptor = membership.item.descriptor
    guard let watch = watches[descriptor] else { return }
    try apply(watch, descriptor)
  }

  func remove(_ membership: Membership<RunLoop.DescriptorSource>) {
    let descriptor = membership.item.descriptor
    guard let watch = watches[descriptor] else { return }
    watch.sources.removeAll { $0 === membership }
    if watch.sources.isEmpty {
      watches[descriptor] = nil
      departures += 1
      // This fails if the descriptor was closed before its source was removed, because closing removes it too.
      if watch.isArmed { try? PollSet.control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0) }
    } else {
      try? apply(watch, descriptor)
    }
  }

  /// Registers the events that a descriptor is watched for with the kernel.
  ///
  /// A descriptor number that was closed and reused may be in this table but not in the kernel's, or vice versa. The
  /// old file may still be open under another number. Events that the kernel reports for it are then stray.
  private func apply(_ watch: Watch, _ descriptor: Int32) throws(SystemError) {
    guard let interests = watch.interests else {
      // The kernel always reports errors and hang-ups of the descriptors in its set, so a paused descriptor is removed
      // from it.
      if watch.isArmed { try? PollSet.control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0) }
      watch.isArmed = false
      return
    }
    do {
      try control(epoll, watch.isArmed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, watch, interests)
    } catch {
      switch (watch.isArmed, error.number) {
      case (true, ENOENT):
        lastSerial &+= 1
        watch.serial = lastSerial
        hasStrayEvents = true
        try control(epoll, EPOLL_CTL_ADD, descriptor, watch, interests)
      case (false, EEXIST): try control(epoll, EPOLL_CTL_MOD, descriptor, watch, interests)
      default: throw error
      }
    }
    watch.isArmed = true
  }

  private func control(
    _ epoll: OwnedDescriptor, _ operation: Int32, _ descriptor: Int32, _ watch: Watch,
    _ interests: RunLoop.DescriptorSource.Events
  ) throws(SystemError) {
    let data = UInt64(watch.serial) << 32 | UInt64(UInt32(bitPattern: descriptor))
    try PollSet.control(epoll, operation, descriptor, interests.epollBits, data)
  }

  /// Prepares the set for a wait, and recreates the kernel's set if that reports an unwatched file, which cannot be
  /// removed.
  func prepareToWait(servingMainQueue: Bool) {
    servesMainQueue = servingMainQueue
    waits &+= 1
    departuresBeforeWait = departures
    beganWithEvent = false
    if hasStrayEvents { makeAnew() }
  }

  /// Recreates the kernel's set with only the watched descriptors, or keeps the old one until the next wait on failure.
  private func makeAnew() {
    do throws(SystemError) {
      let fresh = try PollSet.makeEpoll(wakeDescriptor, mainQueueHandle: mainQueueHandle, otherLoop: otherLoop)
      for (descriptor, watch) in watches.all where watch.isArmed {
        do throws(SystemError) {
          try control(fresh, EPOLL_CTL_ADD, descriptor, watch, watch.interests ?? [])
        } catch {
          // A descriptor that was closed, or now refers to a regular file, cannot be watched in any set.
          guard error.number == EBADF || error.number == EPERM else { throw error }
        }
      }
      epoll = fresh
      hasStrayEvents = false
    } catch {}
  }

  /// Takes the next descriptor of the batch, and returns the source whose turn it is and its events; nil at the end of
  /// the batch.
  ///
  /// Descriptors that are no longer watched, or not for these events, are skipped.
  func takeNext() -> Turn? {
    if isUnfair, takenCount == 0, foundCount > 1 { start = placeOfLongestWaiting() }
    while hasFound {
      let found = next
      takenCount += 1
      let served = watches.withWatch(of: found.descriptor) { watch in
        watch.serial == found.serial ? takeTurn(watch, found) : nil
      }
      if let served, let served { return served }
      noteStray(found)
    }
    return nil
  }

  @inline(__always)
  private func takeTurn(_ watch: Watch, _ found: Ready) -> Turn? {
    services += 1
    watch.lastService = services
    isSuspect = watch.streak.noteService(inWait: waits)
    return watch.takeTurn(found)
  }

  /// Records whether a suspect descriptor was read in one service, and returns whether to report it now.
  func noteSuspect(_ descriptor: Int32, wasRead: Bool) -> Bool {
    watches.withWatch(of: descriptor) { $0.streak.noteEvidence(wasRead: wasRead) } ?? false
  }

  /// Returns the index in the batch of the descriptor that has not been served for the longest time.
  ///
  /// The kernel's next batch continues after the last descriptor reported, not after the last one served. A run that
  /// serves only one descriptor of each batch would starve others if it always took the first one.
  private func placeOfLongestWaiting() -> Int {
    var place = 0
    var least = UInt64.max
    for index in 0..<foundCount {
      let found = Ready(buffer[index])
      let service = watches.withWatch(of: found.descriptor) { $0.serial == found.serial ? $0.lastService : .max }
      if let service, service < least { (place, least) = (index, service) }
    }
    return place
  }

  /// Records a stray event: one without a watch, although no descriptor was removed since the wait that found it.
  private func noteStray(_ found: Ready) {
    if departures == departuresBeforeWait, watches[found.descriptor]?.serial != found.serial { hasStrayEvents = true }
  }
}

// Waiting. Called on the loop's thread.
extension PollSet {
  /// The first descriptor of the batch that was not taken yet, or nil if there is none.
  var firstFound: Int32? { hasFound ? next.descriptor : nil }

  /// The first descriptor of the batch that was not taken yet, which requires ``hasFound``.
  private var next: Ready {
    @inline(__always) get {
      let place = start &+ takenCount
      return Ready(buffer[place < foundCount ? place : place &- foundCount])
    }
  }

  /// Whether the last wait's batch contains a descriptor that was not taken yet.
  var hasFound: Bool {
    @inline(__always) get { takenCount < foundCount }
  }

  /// Whether the last wait found work that the run serves.
  var hasWork: Bool { hasFound || (isMainQueueReady && servesMainQueue) || isOtherLoopReady }

  /// Returns whether the other library's loop has received work since the last call.
  func takeOtherLoop() -> Bool {
    defer { isOtherLoopReady = false }
    return isOtherLoopReady
  }

  /// Waits until a descriptor is ready, the loop is woken, or the wait times out.
  ///
  /// - Parameter nanoseconds: The timeout; nil means no limit. The wait may end early, so the caller must check again.
  func wait(_ nanoseconds: Int64?) {
    // The kernel reports the rest of an unfinished batch again in a later wait.
    isUnfair = hasFound
    foundCount = 0
    takenCount = 0
    let count = Int(waitUnlessInterrupted(nanoseconds))
    beganWithEvent = count > 0 && buffer[0].data.u64 != Token.wake
    for index in 0..<count {
      switch buffer[index].data.u64 {
      case Token.wake: break
      case Token.mainQueue: isMainQueueReady = true
      case Token.otherLoop: isOtherLoopReady = true
      default:
        buffer[foundCount] = buffer[index]
        foundCount += 1
      }
    }
    start = 0
  }

  /// Checks for events without waiting, and returns whether there is work that the current run serves.
  func poll() -> Bool {
    wait(0)
    return hasWork
  }

  private func waitUnlessInterrupted(_ nanoseconds: Int64?) -> Int32 {
    do {
      return try waitForEvents(nanoseconds)
    } catch {
      // A wait in the loop's own set only fails otherwise if other code closed the set. The loop cannot continue then.
      guard error.number == EINTR else { fatalError("the run loop's descriptor \(epoll.number) was closed: \(error)") }
      return 0
    }
  }

  private func waitForEvents(_ nanoseconds: Int64?) throws(SystemError) -> Int32 {
    let number = epoll.number
    if !PollSet.countsMilliseconds.load(ordering: .relaxed) {
      do {
        guard var timeout = nanoseconds.map(timespec.init(nanoseconds:)) else {
          return try SystemCall.epollWaitNanoseconds.make { crl_epoll_wait(number, buffer, Int32(Self.batch), nil) }
        }
        return try SystemCall.epollWaitNanoseconds.make { crl_epoll_wait(number, buffer, Int32(Self.batch), &timeout) }
      } catch {
        guard error.number == ENOSYS || error.number == EPERM else { throw error }
        PollSet.countsMilliseconds.store(true, ordering: .relaxed)
      }
    }
    // Rounded up, because a wait that ends too early would be repeated in a busy loop until its deadline.
    let milliseconds = nanoseconds.map { Int32(clamping: ($0 / 1_000_000) + ($0 % 1_000_000 == 0 ? 0 : 1)) } ?? -1
    return try SystemCall.epollWait.make {
      crl_epoll_wait_milliseconds(number, buffer, Int32(Self.batch), milliseconds)
    }
  }

  /// Whether the kernel lacks a wait with a timeout in nanoseconds; set when such a wait first fails.
  ///
  /// Relaxed: a thread that does not see the change yet tries the wait itself.
  static let countsMilliseconds = Atomic<Bool>(false)
}
