// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The ended children that an ``OrphanReaper`` has found, and which it reaps if no other code does.
final class AdoptedChildren: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  /// A child that has ended, with a descriptor that never refers to another process that reuses its ID.
  private struct Ended {
    let descriptor: OwnedDescriptor
    let due: Tick
  }

  /// The maximum number of ended children tracked at a time, each with a descriptor; others wait until these are
  /// reaped.
  private static let most = 64
  /// The time after which children are looked for again for which there was no descriptor.
  private static let retryInterval: Duration = .milliseconds(100)

  private let grace: Duration
  private let leaving: (@Sendable (Int32) -> Bool)?
  private let handler: (@Sendable (OrphanReaper.Orphan) -> Void)?
  private let lock = ProcessLock()
  private var ended: [Int32: Ended] = [:]
  /// Ended children that are left to other code until the next signal; they have no descriptor here.
  private var left: Set<Int32> = []
  /// Children of threads that do not adopt orphans, with their start times; the kernel reparents them when their thread
  /// ends.
  private var others: [Int32: String] = [:]
  private var places: [(loop: RunLoop, mode: RunLoop.Mode)] = []
  private var timer: RegisteredTimer?
  private var lacksDescriptor = false

  init(
    _ grace: Duration, _ leaving: (@Sendable (Int32) -> Bool)?, _ handler: (@Sendable (OrphanReaper.Orphan) -> Void)?
  ) {
    (self.grace, self.leaving, self.handler) = (grace, leaving, handler)
  }

  func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    guard lock.lockUnlessParents() else { return }
    if !places.contains(where: { $0.loop === loop && $0.mode == mode }) { places.append((loop, mode)) }
    timer?.enter(loop, mode)
    lock.unlock()
    loop.perform(inModes: [mode]) { [weak self] in self?.look() }
  }

  func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    guard lock.lockUnlessParents() else { return }
    defer { lock.unlock() }
    places.removeAll { $0.loop === loop && $0.mode == mode }
    timer?.leave(loop, mode, isLast: !places.contains { $0.loop === loop })
  }

  func end() {
    guard lock.lockUnlessParents() else { return }
    let over = timer
    (timer, ended, places) = (nil, [:], [])
    (left, others) = ([], [:])
    lock.unlock()
    over?.invalidate()
  }

  /// Records children that have ended, and reaps those whose grace period is over; must be called on a loop's thread.
  ///
  /// - Parameter isSignalled: Whether a child has ended since the last call. Only then is `leaving` called again for
  ///   the children left to other code.
  func look(isSignalled: Bool = false) {
    let now = RunLoop.current.clockNow
    let children = Self.children()
    guard lock.lockUnlessParents() else { return }
    guard !places.isEmpty else { return lock.unlock() }
    lacksDescriptor = children == nil
    let present = children.map { adoptable($0) } ?? left.union(ended.keys)
    ended = ended.filter { present.contains($0.key) }
    left.formIntersection(present)
    let asked = isSignalled ? left : []
    let due = ended.filter { $0.value.due <= now }
    for process in due.keys { ended[process] = nil }
    lock.unlock()
    let released = asked.filter { leaving?($0) != true }
    var kept: Set<Int32> = []
    for (process, found) in due {
      // A call-out may have ended the reaper.
      guard lock.ifOwned(else: false, { !places.isEmpty }) else { return }
      if !reap(process, found) { kept.insert(process) }
    }
    guard lock.lockUnlessParents() else { return }
    guard !places.isEmpty else { return lock.unlock() }
    left.subtract(released)
    left.formUnion(kept)
    for process in present where ended.count < Self.most && ended[process] == nil && due[process] == nil {
      if !left.contains(process) { note(process, now) }
    }
    let over = waitForNext(now, hasMore: !due.isEmpty)
    lock.unlock()
    over?.invalidate()
  }

  /// Records the children of threads that do not adopt orphans, and returns those that may have been adopted; requires
  /// the lock.
  private func adoptable(_ children: Children) -> Set<Int32> {
    // A child that is being reparented may be in neither list, so ask the kernel whether it is still a child.
    others = others.filter {
      children.others.contains($0.key) || children.adoptable.contains($0.key) || crl_process_has_ended($0.key) >= 0
    }
    for process in children.others where others[process] == nil { others[process] = Self.start(of: process) }
    return children.adoptable.filter { process in
      guard let start = others[process] else { return true }
      if start == Self.start(of: process) { return false }
      // Another process has this ID now.
      others[process] = nil
      return true
    }
  }

  /// Reaps a child, or returns false if it is left to other code.
  private func reap(_ process: Int32, _ found: Ended) -> Bool {
    guard !ChildProcess.isKnown(process), leaving?(process) != true else { return false }
    var code: Int32 = 0
    var status: Int32 = 0
    let answer = try? SystemCall.processWait.makeUninterrupted {
      crl_process_wait(found.descriptor.number, 0, &code, &status)
    }
    // Other code may have just reaped the child.
    guard answer == 1 else { return false }
    handler?(OrphanReaper.Orphan(process: process, status: .init(code: code, status: status)))
    return true
  }

  /// Records a child if it has ended; requires the lock.
  private func note(_ process: Int32, _ now: Tick) {
    guard crl_process_has_ended(process) == 1, !ChildProcess.isKnown(process) else { return }
    guard let number = try? SystemCall.processDescriptor.make({ crl_process_open(process) }) else {
      return lacksDescriptor = true
    }
    ended[process] = Ended(descriptor: OwnedDescriptor(number), due: now + Int64(saturating: grace))
  }

  /// Starts a timer for the next child that is due, and returns the timer that it replaces; requires the lock.
  private func waitForNext(_ now: Tick, hasMore: Bool) -> RegisteredTimer? {
    defer { for place in places { timer?.enter(place.loop, place.mode) } }
    let before = timer
    timer = nil
    let retry = lacksDescriptor ? now + Int64(saturating: Self.retryInterval) : hasMore ? now : nil
    guard let next = ended.values.map(\.due).min() ?? retry else { return before }
    timer = RegisteredTimer(deadline: next.instant) { [weak self] _ in self?.look() }
    return before
  }
}

// MARK: - Enumeration of the children
extension AdoptedChildren {
  private struct Children {
    /// The children of threads that adopt orphans.
    var adoptable: Set<Int32> = []
    /// The children of other threads.
    var others: Set<Int32> = []
  }

  /// Returns this process's children, or `nil` if no descriptor is left.
  private static func children() -> Children? {
    let own = getpid()
    var found = Children()
    var isKnown = false
    guard let threads = names(of: "/proc/self/task") else { return nil }
    for thread in threads where thread != own {
      guard let children = children(of: thread) else { continue }
      isKnown = true
      found.others.formUnion(children)
    }
    // The first thread is last, because children of a thread that ends in the meantime move there.
    if let children = children(of: own) {
      isKnown = true
      found.adoptable = Set(children)
    }
    // Some kernels lack this file and do not report which thread a child belongs to.
    guard isKnown else {
      return names(of: "/proc").map { all in Children(adoptable: Set(all.filter { parent(of: $0) == own })) }
    }
    // The first thread adopts orphans. If it has ended, any other thread may.
    return isZombie("/proc/self/task/\(own)/stat") ? Children(adoptable: found.adoptable.union(found.others)) : found
  }

  /// Returns the IDs of a thread's children, or `nil` if the thread has ended or the kernel does not report them.
  private static func children(of thread: Int32) -> [Int32]? {
    text(of: "/proc/self/task/\(thread)/children")?.split(separator: " ").compactMap { Int32($0) }
  }

  /// Returns the start time of a process in the kernel's units, or an empty string if it cannot be read.
  private static func start(of process: Int32) -> String {
    fields("/proc/\(process)/stat").dropFirst(19).first.map { String($0) } ?? ""
  }

  private static func isZombie(_ path: String) -> Bool { fields(path).first == "Z" }

  private static func parent(of process: Int32) -> Int32? {
    fields("/proc/\(process)/stat").dropFirst().first.flatMap { Int32($0) }
  }

  /// Returns the fields after the name, which may contain any character: the state, the parent, and so on.
  private static func fields(_ path: String) -> [Substring] {
    guard let text = text(of: path), let end = text.lastIndex(of: ")") else { return [] }
    return text[text.index(after: end)...].split(separator: " ")
  }

  private static func text(of path: String) -> String? {
    let number = open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { return nil }
    let file = OwnedDescriptor(number)
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(file.number, &buffer, buffer.count)
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the names in a directory that are numbers, or `nil` if no descriptor is left.
  private static func names(of path: String) -> [Int32]? {
    guard let directory = opendir(path) else { return [EMFILE, ENFILE].contains(errno) ? nil : [] }
    defer { closedir(directory) }
    var numbers: [Int32] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if let number = Int32(name) { numbers.append(number) }
    }
    return numbers
  }
}
