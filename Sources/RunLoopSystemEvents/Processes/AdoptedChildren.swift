// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The ended children that an ``OrphanReaper`` has found, and reaps if no other code does.
final class AdoptedChildren: @unchecked Sendable {
  // Sendable: the lock guards what can change.

  /// A child that has ended, and never another one that gets its number later.
  private struct Ended {
    let descriptor: OwnedDescriptor
    let due: Tick
  }

  /// How many are kept at a time, each with a descriptor; the others wait until these are reaped.
  private static let most = 64

  private let grace: Duration
  private let leaving: (@Sendable (Int32) -> Bool)?
  private let handler: (@Sendable (OrphanReaper.Orphan) -> Void)?
  private let lock = ProcessLock()
  private var ended: [Int32: Ended] = [:]
  /// Ended children that are left to other code until the next signal; they hold no descriptor.
  private var left: Set<Int32> = []
  /// Children that a thread which does not adopt has had, with the time of their start: when that thread ends, the
  /// kernel gives them to one that does.
  private var others: [Int32: String] = [:]
  private var places: [(loop: RunLoop, mode: RunLoop.Mode)] = []
  private var timer: RegisteredTimer?

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

  /// Notes children that have ended, and reaps those whose time is over.
  ///
  /// On a loop's thread.
  ///
  /// - Parameter isSignalled: Whether a child has ended since the last look. Only then does it ask again for the
  ///   children that are left.
  func look(isSignalled: Bool = false) {
    let now = RunLoop.current.clockNow
    let children = Self.children()
    guard lock.lockUnlessParents() else { return }
    guard !places.isEmpty else { return lock.unlock() }
    let present = adoptable(children)
    ended = ended.filter { present.contains($0.key) }
    left.formIntersection(present)
    let asked = isSignalled ? left : []
    let due = ended.filter { $0.value.due <= now }
    for process in due.keys { ended[process] = nil }
    lock.unlock()
    let released = asked.filter { leaving?($0) != true }
    var kept: Set<Int32> = []
    for (process, found) in due where !reap(process, found) { kept.insert(process) }
    guard lock.lockUnlessParents() else { return }
    // A call-out may have ended the reaper.
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

  /// Remembers the children of threads that do not adopt, and returns those that may be adopted.
  ///
  /// Under the lock.
  private func adoptable(_ children: Children) -> Set<Int32> {
    // One that moves from thread to thread may be in neither list: the kernel says whether it is still a child.
    others = others.filter {
      children.others.contains($0.key) || children.adoptable.contains($0.key) || crl_process_has_ended($0.key) >= 0
    }
    for process in children.others where others[process] == nil { others[process] = Self.start(of: process) }
    return children.adoptable.filter { process in
      guard let start = others[process] else { return true }
      if start == Self.start(of: process) { return false }
      // Another process has its number now.
      others[process] = nil
      return true
    }
  }

  /// Reaps a child; returns false if it is left.
  private func reap(_ process: Int32, _ found: Ended) -> Bool {
    guard !ChildProcess.isKnown(process), leaving?(process) != true else { return false }
    var code: Int32 = 0
    var status: Int32 = 0
    let answer = try? SystemCall.processWait.makeUninterrupted {
      crl_process_wait(found.descriptor.number, 0, &code, &status)
    }
    // Other code may have reaped it just now.
    guard answer == 1 else { return false }
    handler?(OrphanReaper.Orphan(process: process, status: .init(code: code, status: status)))
    return true
  }

  /// Notes a child if it has ended.
  ///
  /// Under the lock.
  private func note(_ process: Int32, _ now: Tick) {
    guard crl_process_has_ended(process) == 1, !ChildProcess.isKnown(process) else { return }
    // Without a descriptor it is looked for again.
    guard let number = try? SystemCall.processDescriptor.make({ crl_process_open(process) }) else { return }
    ended[process] = Ended(descriptor: OwnedDescriptor(number), due: now + Int64(saturating: grace))
  }

  /// Looks again when the next time is over, and returns the timer before.
  ///
  /// Under the lock.
  private func waitForNext(_ now: Tick, hasMore: Bool) -> RegisteredTimer? {
    defer { for place in places { timer?.enter(place.loop, place.mode) } }
    let before = timer
    timer = nil
    guard let next = ended.values.map(\.due).min() ?? (hasMore ? now : nil) else { return before }
    timer = RegisteredTimer(deadline: next.instant) { [weak self] _ in self?.look() }
    return before
  }
}

// Which children there are.
extension AdoptedChildren {
  /// The numbers of the children, ended or not.
  private struct Children {
    /// Those of the threads that adopt.
    var adoptable: Set<Int32> = []
    /// Those of the other threads.
    var others: Set<Int32> = []
  }

  private static func children() -> Children {
    let own = getpid()
    var found = Children()
    var isKnown = false
    for thread in names(of: "/proc/self/task") where thread != own {
      guard let children = children(of: thread) else { continue }
      isKnown = true
      found.others.formUnion(children)
    }
    // The first thread's come last: those of a thread that ends meanwhile move there.
    if let children = children(of: own) {
      isKnown = true
      found.adoptable = Set(children)
    }
    // Some kernels have no such file, and do not say which thread has a child.
    guard isKnown else { return Children(adoptable: Set(names(of: "/proc").filter { parent(of: $0) == own })) }
    // The first thread adopts; if it has left, any other may.
    return isZombie("/proc/self/task/\(own)/stat") ? Children(adoptable: found.adoptable.union(found.others)) : found
  }

  /// The numbers of a thread's children; nil if the thread has ended, or the kernel does not say.
  private static func children(of thread: Int32) -> [Int32]? {
    text(of: "/proc/self/task/\(thread)/children")?.split(separator: " ").compactMap { Int32($0) }
  }

  /// When a process was started, in the kernel's units; empty if that cannot be read.
  private static func start(of process: Int32) -> String {
    fields("/proc/\(process)/stat").dropFirst(19).first.map { String($0) } ?? ""
  }

  private static func isZombie(_ path: String) -> Bool { fields(path).first == "Z" }

  private static func parent(of process: Int32) -> Int32? {
    fields("/proc/\(process)/stat").dropFirst().first.flatMap { Int32($0) }
  }

  /// What is behind the name, which may contain anything: the state, the parent, and so on.
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

  /// The names in a directory that are numbers.
  private static func names(of path: String) -> [Int32] {
    guard let directory = opendir(path) else { return [] }
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
