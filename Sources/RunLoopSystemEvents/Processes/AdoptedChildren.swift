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
    lock.unlock()
    over?.invalidate()
  }

  /// Notes children that have ended, and reaps those whose time is over.
  ///
  /// On a loop's thread.
  func look() {
    let now = RunLoop.current.clockNow
    let present = Self.children()
    guard lock.lockUnlessParents() else { return }
    guard !places.isEmpty else { return lock.unlock() }
    ended = ended.filter { present.contains($0.key) }
    let due = ended.filter { $0.value.due <= now }
    for process in due.keys { ended[process] = nil }
    lock.unlock()
    for (process, found) in due { reap(process, found) }
    guard lock.lockUnlessParents() else { return }
    for process in present where ended.count < Self.most && ended[process] == nil && due[process] == nil {
      note(process, now)
    }
    let over = waitForNext(now, hasMore: !due.isEmpty)
    lock.unlock()
    over?.invalidate()
  }

  private func reap(_ process: Int32, _ found: Ended) {
    guard !ChildProcess.isKnown(process), leaving?(process) != true else { return }
    var code: Int32 = 0
    var status: Int32 = 0
    let answer = try? SystemCall.processWait.makeUninterrupted {
      crl_process_wait(found.descriptor.number, 0, &code, &status)
    }
    // Other code may have reaped it just now.
    guard answer == 1 else { return }
    handler?(OrphanReaper.Orphan(process: process, status: .init(code: code, status: status)))
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
  /// The numbers of the children that may be adopted, ended or not.
  private static func children() -> Set<Int32> {
    let own = getpid()
    // The first thread adopts; if it has left, any other may.
    let threads = isZombie("/proc/self/task/\(own)/stat") ? names(of: "/proc/self/task") : [own]
    var found: Set<Int32> = []
    var isKnown = false
    for thread in threads {
      guard let text = text(of: "/proc/self/task/\(thread)/children") else { continue }
      isKnown = true
      found.formUnion(text.split(separator: " ").compactMap { Int32($0) })
    }
    // Some kernels have no such file.
    return isKnown ? found : Set(names(of: "/proc").filter { parent(of: $0) == own })
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
    return String(decoding: bytes, as: UTF8.self).trimmingLineEnd
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

extension String {
  fileprivate var trimmingLineEnd: String { last == "\n" ? String(dropLast()) : self }
}
