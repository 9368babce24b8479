// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import Synchronization

/// The descriptors that one mode watches: an epoll set in which the interests of all sources of a descriptor are
/// merged.
///
/// The set lives as long as its mode watches anything, and as long as the loop's thread waits in it.
final class PollSet: @unchecked Sendable {
  // Sendable: the watches are guarded by the loop's table lock; what was found ready belongs to the loop's thread.

  /// A descriptor that a wait found ready.
  struct Ready {
    let descriptor: Int32
    let serial: UInt32
    let events: RunLoop.DescriptorSource.Events
    /// The other end has stopped writing, which is reported only to sources that ask for hang-ups.
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

  /// How many events one wait takes from the kernel.
  private static let batch = 64

  let wakeDescriptor: WakeDescriptor
  @exclusivity(unchecked) private var epoll: OwnedDescriptor
  /// The kernel's set, for a gate to watch; ``prepareToWait(servingMainQueue:)`` may replace it.
  var descriptor: OwnedDescriptor { epoll }
  @exclusivity(unchecked) private var mainQueueHandle: Int32?
  /// What becomes readable when another library's loop of the same thread has been given something to do.
  @exclusivity(unchecked) private var otherLoop: Int32?
  @exclusivity(unchecked) private var watches = WatchTable()
  @exclusivity(unchecked) private var lastSerial: UInt32 = 0
  /// How many descriptors have left so far, and how many had when the last wait began.
  @exclusivity(unchecked) private var departures = 0
  @exclusivity(unchecked) private var departuresBeforeWait = 0
  /// Whether there were events that belong to no watch: a descriptor was closed while a copy of it lives on.
  @exclusivity(unchecked) private var hasStrayEvents = false

  /// The events that the last wait has found, in the order of the kernel.
  private let buffer: UnsafeMutablePointer<epoll_event>
  @exclusivity(unchecked) private var foundCount = 0
  /// How many of the batch have been taken, and where in the buffer the batch begins.
  @exclusivity(unchecked) private var takenCount = 0
  @exclusivity(unchecked) private var start = 0
  /// Whether the previous batch was not served to its end, so that this one begins with the descriptor that has waited
  /// longest.
  @exclusivity(unchecked) private var isUnfair = false
  @exclusivity(unchecked) private var services: UInt64 = 0
  @exclusivity(unchecked) private var waits: UInt64 = 0
  /// Whether the descriptor taken last has been ready so often that its handler may not read it.
  @exclusivity(unchecked) private(set) var isSuspect = false
  /// Whether the first thing that the last wait found was an event, and not the loop's own counter.
  ///
  /// The kernel reports what became ready in that order, since the set had nothing ready when the wait began.
  @exclusivity(unchecked) private(set) var beganWithEvent = false
  /// Whether the main dispatch queue has reported that it has work.
  @exclusivity(unchecked) var isMainQueueReady = false
  /// Whether the other library's loop has been given something to do.
  @exclusivity(unchecked) private(set) var isOtherLoopReady = false
  /// Whether the main dispatch queue ends the prepared wait: a run within a block of that queue keeps it for the run
  /// around it.
  @exclusivity(unchecked) private var servesMainQueue = false

  init(wakeDescriptor: WakeDescriptor) throws(SystemError) {
    self.wakeDescriptor = wakeDescriptor
    epoll = try PollSet.makeEpoll(wakeDescriptor, mainQueueHandle: nil, otherLoop: nil)
    // This comes last: an object whose initialisation fails is not deinitialised.
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

  /// Edge-triggered: there is one event for each write, so a counter need not be read to be quiet.
  private static let counterEvents = EPOLLIN.rawValue | EPOLLET.rawValue

  private static func control(
    _ epoll: OwnedDescriptor, _ operation: Int32, _ descriptor: Int32, _ events: UInt32, _ data: UInt64
  ) throws(SystemError) {
    _ = try SystemCall.epollControl.make { crl_epoll_control(epoll.number, operation, descriptor, events, data) }
  }
}

// Watching descriptors, under the loop's table lock.
extension PollSet {
  /// Whether nothing is watched.
  var isEmpty: Bool { watches.isEmpty && mainQueueHandle == nil && otherLoop == nil }

  /// Also waits for the main dispatch queue from now on.
  func watchMainQueue(_ handle: Int32) throws(SystemError) {
    guard mainQueueHandle == nil else { return }
    try PollSet.control(epoll, EPOLL_CTL_ADD, handle, PollSet.counterEvents, Token.mainQueue)
    mainQueueHandle = handle
  }

  /// No longer waits for the main dispatch queue.
  func forgetMainQueue() {
    guard let handle = mainQueueHandle else { return }
    try? PollSet.control(epoll, EPOLL_CTL_DEL, handle, 0, 0)
    mainQueueHandle = nil
    isMainQueueReady = false
  }

  /// Also waits for another library's loop from now on.
  func watchOtherLoop(_ descriptor: Int32) throws(SystemError) {
    guard otherLoop == nil else { return }
    try PollSet.control(epoll, EPOLL_CTL_ADD, descriptor, PollSet.counterEvents, Token.otherLoop)
    otherLoop = descriptor
  }

  /// No longer waits for another library's loop.
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

  /// Notes that the events that a source waits for have changed.
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
      // The descriptor may have been closed before its source was removed: then the kernel has forgotten it already.
      if watch.isArmed { try? PollSet.control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0) }
    } else {
      try? apply(watch, descriptor)
    }
  }

  /// Registers with the kernel what a descriptor is watched for.
  ///
  /// A descriptor number that was closed and reused may be in our table and not in the kernel's, or the other way
  /// round. The old file may live on under another number; events that the kernel reports for it are stray from now on.
  private func apply(_ watch: Watch, _ descriptor: Int32) throws(SystemError) {
    guard let interests = watch.interests else {
      // The kernel always reports errors and hang-ups of the descriptors in its set, so a paused descriptor leaves the
      // set.
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

  /// Prepares the set for a wait: remakes the kernel's set if it reports a file that nobody watches and nobody can
  /// remove.
  func prepareToWait(servingMainQueue: Bool) {
    servesMainQueue = servingMainQueue
    waits &+= 1
    departuresBeforeWait = departures
    beganWithEvent = false
    if hasStrayEvents { makeAnew() }
  }

  /// Remakes the kernel's set with what is watched and nothing else, or leaves the old one for this time.
  private func makeAnew() {
    do throws(SystemError) {
      let fresh = try PollSet.makeEpoll(wakeDescriptor, mainQueueHandle: mainQueueHandle, otherLoop: otherLoop)
      for (descriptor, watch) in watches.all where watch.isArmed {
        do throws(SystemError) {
          try control(fresh, EPOLL_CTL_ADD, descriptor, watch, watch.interests ?? [])
        } catch {
          // A number that is closed, or belongs to a regular file by now, can no longer be watched in any set.
          guard error.number == EBADF || error.number == EPERM else { throw error }
        }
      }
      epoll = fresh
      hasStrayEvents = false
    } catch {}
  }

  /// The source whose turn it is among those of the next descriptor that the last wait has found, and what has
  /// happened; nil at the end of the batch.
  ///
  /// A descriptor that is no longer watched, or not for what has happened, is skipped.
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

  /// Records whether a suspect descriptor was read in one service; returns whether to report it now.
  func noteSuspect(_ descriptor: Int32, wasRead: Bool) -> Bool {
    watches.withWatch(of: descriptor) { $0.streak.noteEvidence(wasRead: wasRead) } ?? false
  }

  /// The place in the batch of the descriptor that was not served for the longest time.
  ///
  /// The kernel continues behind everything that it has reported, not behind what was served: code that takes one of a
  /// batch must not take the first, nor rely on the descriptor behind the last one being in the next batch.
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

  /// An event without a watch is stray if no descriptor has left since the wait that found it.
  private func noteStray(_ found: Ready) {
    if departures == departuresBeforeWait, watches[found.descriptor]?.serial != found.serial { hasStrayEvents = true }
  }
}

// The wait. Called on the loop's thread.
extension PollSet {
  /// The first descriptor that the last wait has found, if it has found one.
  var firstFound: Int32? { hasFound ? next.descriptor : nil }

  /// The first descriptor that was found and not taken yet; there must be one.
  private var next: Ready {
    @inline(__always) get {
      let place = start &+ takenCount
      return Ready(buffer[place < foundCount ? place : place &- foundCount])
    }
  }

  /// Whether the batch of the last wait has a descriptor that was not taken yet.
  var hasFound: Bool {
    @inline(__always) get { takenCount < foundCount }
  }

  /// Whether the last wait has found something that the run serves.
  var hasWork: Bool { hasFound || (isMainQueueReady && servesMainQueue) || isOtherLoopReady }

  /// Whether the other library's loop has been given something to do since the last call.
  func takeOtherLoop() -> Bool {
    defer { isOtherLoopReady = false }
    return isOtherLoopReady
  }

  /// Waits until a descriptor is ready, the loop is woken, or the time is over.
  ///
  /// - Parameter nanoseconds: How long to wait; nil means indefinitely. It may return early: the caller looks again.
  func wait(_ nanoseconds: Int64?) {
    // The next wait asks again for the rest of a batch.
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

  /// Asks what is ready, without waiting; returns whether there is anything for the run that has prepared it.
  func poll() -> Bool {
    wait(0)
    return hasWork
  }

  private func waitUnlessInterrupted(_ nanoseconds: Int64?) -> Int32 {
    do {
      return try waitForEvents(nanoseconds)
    } catch {
      // Nothing else can go wrong with our own set, unless other code has closed it: then the loop cannot go on.
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
    // Rounded up: a wait that ends too soon would spin until its time.
    let milliseconds = nanoseconds.map { Int32(clamping: ($0 / 1_000_000) + ($0 % 1_000_000 == 0 ? 0 : 1)) } ?? -1
    return try SystemCall.epollWait.make {
      crl_epoll_wait_milliseconds(number, buffer, Int32(Self.batch), milliseconds)
    }
  }

  /// Set once, if the kernel turns out to have no wait in nanoseconds.
  ///
  /// Relaxed: a thread that does not see it yet asks the kernel itself.
  static let countsMilliseconds = Atomic<Bool>(false)
}
