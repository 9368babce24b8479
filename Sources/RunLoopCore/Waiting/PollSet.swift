import CRunLoopSystem
import Glibc
import Synchronization

/// The descriptors that one mode watches: an epoll set in which the interests of all sources of a descriptor are merged.
///
/// The set lives as long as its mode watches anything, and as long as the loop's thread waits in it.
final class PollSet: @unchecked Sendable {
  // Sendable: the watches are guarded by the loop's table lock, what was found ready belongs to the loop's thread.

  /// A descriptor that a wait found ready.
  struct Ready {
    let descriptor: Int32
    let serial: UInt32
    let events: RunLoop.DescriptorSource.Events
    /// The other end writes no more, which only those are told who ask for hang-ups.
    let isHalfClosed: Bool
  }

  private enum Token {
    static let wake = UInt64.max
    static let mainQueue = UInt64.max - 1
  }

  /// How many events one wait takes from the kernel.
  private static let batch = 64

  let wakeDescriptor: WakeDescriptor
  @exclusivity(unchecked) private var epoll: OwnedDescriptor
  /// The kernel's set, for a gate to watch; another after ``prepareToWait(servedBefore:)``.
  var descriptor: OwnedDescriptor { epoll }
  @exclusivity(unchecked) private var mainQueueHandle: Int32?
  @exclusivity(unchecked) private var watches = WatchTable()
  @exclusivity(unchecked) private var lastSerial: UInt32 = 0
  /// How many descriptors have left, now and when the last wait began.
  @exclusivity(unchecked) private var departures = 0
  @exclusivity(unchecked) private var departuresBeforeWait = 0
  /// How many times the loop had served a descriptor when the last wait began, but for those that were of this set.
  @exclusivity(unchecked) private var seenServices = 0
  /// Whether what was found ready may be so no more.
  @exclusivity(unchecked) private var mustVerify = false

  @exclusivity(unchecked) private var ready = MoveQueue<Ready>()
  private let buffer = UnsafeMutablePointer<epoll_event>.allocate(capacity: PollSet.batch)
  /// The main dispatch queue has said that it has work.
  @exclusivity(unchecked) var isMainQueueReady = false
  /// Events came that belong to no watch: a descriptor was closed while a copy of it lives on.
  @exclusivity(unchecked) private var hasStrayEvents = false

  init(wakeDescriptor: WakeDescriptor) throws(SystemError) {
    self.wakeDescriptor = wakeDescriptor
    epoll = try PollSet.makeEpoll(wakeDescriptor, mainQueueHandle: nil)
  }

  deinit {
    buffer.deallocate()
  }

  private static func makeEpoll(
    _ wakeDescriptor: WakeDescriptor, mainQueueHandle: Int32?
  ) throws(SystemError) -> OwnedDescriptor {
    let epoll = OwnedDescriptor(try SystemCall.epollCreate.make { crl_epoll_create() })
    try control(epoll, EPOLL_CTL_ADD, wakeDescriptor.descriptor.number, counterEvents, Token.wake)
    if let mainQueueHandle { try control(epoll, EPOLL_CTL_ADD, mainQueueHandle, counterEvents, Token.mainQueue) }
    return epoll
  }

  /// Edge-triggered: one event for each write, so that a counter need not be read to be quiet.
  private static let counterEvents = EPOLLIN.rawValue | EPOLLET.rawValue

  private static func control(
    _ epoll: OwnedDescriptor, _ operation: Int32, _ descriptor: Int32, _ events: UInt32, _ data: UInt64
  ) throws(SystemError) {
    _ = try SystemCall.epollControl.make { crl_epoll_control(epoll.number, operation, descriptor, events, data) }
  }
}

// What is watched. Under the loop's table lock.
extension PollSet {
  /// Whether nothing is watched.
  var isEmpty: Bool { watches.isEmpty && mainQueueHandle == nil }

  /// Waits for the main dispatch queue too.
  func watchMainQueue(_ handle: Int32) throws(SystemError) {
    guard mainQueueHandle == nil else { return }
    try PollSet.control(epoll, EPOLL_CTL_ADD, handle, PollSet.counterEvents, Token.mainQueue)
    mainQueueHandle = handle
  }

  /// Waits for the main dispatch queue no more.
  func forgetMainQueue() {
    guard let handle = mainQueueHandle else { return }
    try? PollSet.control(epoll, EPOLL_CTL_DEL, handle, 0, 0)
    mainQueueHandle = nil
    isMainQueueReady = false
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

  /// Notes that what a source waits for has changed.
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

  /// Tells the kernel what a descriptor is watched for.
  ///
  /// A number that was closed and used again stands in our table and not in the kernel's, or the other way round. The old file
  /// may live on under another number; what the kernel says of it is stray from now on.
  private func apply(_ watch: Watch, _ descriptor: Int32) throws(SystemError) {
    guard let interests = watch.interests else {
      // Errors and hang-ups are always reported of what stands in the kernel's set, so a paused descriptor leaves it.
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

  /// Whether an earlier wait has found something that is still to be served.
  ///
  /// If not, the set is made ready for a wait: the kernel's is made anew if it reports what nobody watches and nobody can
  /// remove.
  ///
  /// - Parameter services: How many times the loop has served a descriptor, in whatever mode.
  func prepareToWait(servedBefore services: Int) -> Bool {
    discardStaleReadiness(services)
    guard ready.isEmpty else { return true }
    mustVerify = false
    departuresBeforeWait = departures
    if hasStrayEvents { makeAnew() }
    return false
  }

  /// Makes the kernel's set anew, with what is watched and nothing else; or leaves the old one for this time.
  private func makeAnew() {
    do throws(SystemError) {
      let fresh = try PollSet.makeEpoll(wakeDescriptor, mainQueueHandle: mainQueueHandle)
      for (descriptor, watch) in watches.all where watch.isArmed {
        do throws(SystemError) {
          try control(fresh, EPOLL_CTL_ADD, descriptor, watch, watch.interests ?? [])
        } catch {
          // A number that is closed, or belongs to a regular file by now, can be watched no more, in any set.
          guard error.number == EBADF || error.number == EPERM else { throw error }
        }
      }
      epoll = fresh
      hasStrayEvents = false
    } catch {}
  }

  /// Notes that anything may have happened since the last wait: what was found ready is asked for again before it is served.
  func distrustReadiness() { mustVerify = true }

  private func noteServices(_ services: Int) {
    guard services != seenServices else { return }
    seenServices = services
    mustVerify = true
  }

  private func discardStaleReadiness(_ services: Int) {
    noteServices(services)
    while !ready.isEmpty {
      let isCurrent = ready.withElement(at: 0) { found in
        hasTaker(found) && (!mustVerify || isStillReady(found))
      }
      if isCurrent { return }
      noteStray(ready.takeFirst())
    }
  }

  /// Whether some source is to be told of what was found.
  private func hasTaker(_ found: Ready) -> Bool {
    watches.withWatch(of: found.descriptor) { $0.serial == found.serial && $0.hasTaker(found) } ?? false
  }

  private func isStillReady(_ found: Ready) -> Bool {
    var asked: Int32 = 0
    if found.events.contains(.readable) { asked |= POLLIN }
    if found.events.contains(.writable) { asked |= POLLOUT }
    return found.isHalfClosed || crl_poll_now(found.descriptor, Int16(asked)) > 0
  }

  /// Readiness of what is not watched is stray if nothing has left since the wait that found it.
  private func noteStray(_ found: Ready) {
    if departures == departuresBeforeWait, watches[found.descriptor]?.serial != found.serial { hasStrayEvents = true }
  }

  /// The source whose turn it is among those of the next ready descriptor, and what it is to be told.
  ///
  /// What was found ready and is watched no more is passed over. The caller serves the source, which counts as one service
  /// more: what else was found ready here still is.
  func takeReady(
    servedBefore services: Int
  ) -> (source: RunLoop.DescriptorSource, events: RunLoop.DescriptorSource.Events)? {
    noteServices(services)
    while !ready.isEmpty {
      let found = ready.takeFirst()
      if !mustVerify || isStillReady(found),
        let taken = watches.withWatch(of: found.descriptor, { $0.serial == found.serial ? $0.takeTurn(found) : nil }),
        let taken
      {
        seenServices = services + 1
        return taken
      }
      noteStray(found)
    }
    return nil
  }

  /// Whether the next that was found ready is still to be served, as far as is known without asking the kernel.
  var hasCurrent: Bool {
    @inline(__always) get { !ready.isEmpty && !mustVerify && ready.withElement(at: 0) { hasTaker($0) } }
  }
}

// The wait. The loop's thread.
extension PollSet {
  /// Whether the last wait found a descriptor.
  var hasFound: Bool { !ready.isEmpty }

  /// Waits until a descriptor is ready, the loop is woken, or the time is over.
  ///
  /// - Parameter nanoseconds: How long to wait; nil: without end. It may return early: the caller looks again.
  func wait(_ nanoseconds: Int64?) {
    guard ready.isEmpty else { return }
    let count = waitUnlessInterrupted(nanoseconds)
    for event in UnsafeBufferPointer(start: buffer, count: Int(count)) {
      switch event.data.u64 {
      case Token.wake: break
      case Token.mainQueue: isMainQueueReady = true
      default:
        let serial = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        let descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: event.data.u64))
        ready.append(
          Ready(
            descriptor: descriptor, serial: serial, events: .init(epollBits: event.events),
            isHalfClosed: event.events & EPOLLRDHUP.rawValue != 0))
      }
    }
  }

  private func waitUnlessInterrupted(_ nanoseconds: Int64?) -> Int32 {
    do {
      return try waitForEvents(nanoseconds)
    } catch {
      // Nothing else can go wrong with a set that is ours, unless somebody has closed it: then the loop cannot go on.
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
    // Rounded up: a wait that is over too soon would spin until its time has come.
    let milliseconds = nanoseconds.map { Int32(clamping: ($0 / 1_000_000) + ($0 % 1_000_000 == 0 ? 0 : 1)) } ?? -1
    return try SystemCall.epollWait.make {
      crl_epoll_wait_milliseconds(number, buffer, Int32(Self.batch), milliseconds)
    }
  }

  /// Set once, when the kernel turns out to have no wait by the nanosecond.
  static let countsMilliseconds = Atomic<Bool>(false)
}

extension RunLoop.DescriptorSource.Events {
  fileprivate init(epollBits: UInt32) {
    self = []
    if epollBits & EPOLLIN.rawValue != 0 { insert(.readable) }
    if epollBits & EPOLLOUT.rawValue != 0 { insert(.writable) }
    if epollBits & EPOLLHUP.rawValue != 0 { insert(.hangUp) }
    if epollBits & EPOLLERR.rawValue != 0 { insert(.error) }
  }

  fileprivate var epollBits: UInt32 {
    var bits: UInt32 = 0
    if contains(.readable) { bits |= EPOLLIN.rawValue }
    if contains(.writable) { bits |= EPOLLOUT.rawValue }
    if contains(.hangUp) { bits |= EPOLLRDHUP.rawValue }
    return bits
  }
}
