// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
package import RunLoopCore

/// A child process, shared by all sources that wait for it, so that it is reaped at most once and each of them is
/// notified of its end.
package final class ChildProcess: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  package typealias End = ChildProcessSource.End

  package let process: Int32
  /// Readable when the process has ended.
  let descriptor: OwnedDescriptor
  private let lock = Lock()
  private var end: End?
  /// Whether the child has been reaped, so that it can no longer be waited for.
  private var isReaped = false
  /// The timers that kill the child, or the process group that it leads, unless it ends in time.
  private var escalations: [(timer: Timer, isOfGroup: Bool)] = []

  private init(_ process: Int32, _ descriptor: OwnedDescriptor) {
    self.process = process
    self.descriptor = descriptor
  }

  /// Returns how the child ended, or `nil` if it has not; reaps it, unless its status is left to other code.
  package func awaitEnd(leavesStatus: Bool) -> End? {
    let (end, over) = lock.withLock { () -> (End?, [Timer]) in
      let end = lookForEnd(leavesStatus: leavesStatus)
      guard end != nil, !escalations.isEmpty else { return (end, []) }
      // Processes that the child has started may still be running.
      let isGroupLeft = escalations.contains(where: \.isOfGroup) && hasGroup
      let over = escalations.filter { !($0.isOfGroup && isGroupLeft) }
      escalations.removeAll { !($0.isOfGroup && isGroupLeft) }
      return (end, over.map(\.timer))
    }
    for timer in over { timer.invalidate() }
    return end
  }

  /// Keeps a timer until the child, or the process group that it leads, has ended, or returns false if it already has.
  package func escalate(by timer: Timer, ofGroup isOfGroup: Bool) -> Bool {
    lock.withLock {
      guard end == nil || (isOfGroup && hasGroup) else { return false }
      escalations.append((timer, isOfGroup))
      return true
    }
  }

  /// Whether the process group that the child leads has a process, including the child until it is reaped; requires the
  /// lock.
  private var hasGroup: Bool { (try? signalGroup(0)) != nil }

  /// Sends a signal to the process group that the child leads, which may outlive it.
  package func send(toGroup signal: Int32) throws(SystemError) {
    lock.lock()
    defer { lock.unlock() }
    try signalGroup(signal)
  }

  /// Requires the lock.
  private func signalGroup(_ signal: Int32) throws(SystemError) {
    do throws(SystemError) {
      _ = try SystemCall.processSignal.make { crl_process_signal_group(descriptor.number, signal) }
    } catch {
      // The kernel is older than Linux 6.9, or a filter rejects the call. The ID refers to the group until the child
      // is reaped.
      guard [EINVAL, ENOSYS, EPERM].contains(error.number) else { throw error }
      guard !isReaped, isThere else { throw SystemError(call: SystemCall.processKill.rawValue, number: ESRCH) }
      _ = try SystemCall.processKill.make { kill(-process, signal) < 0 ? -errno : 0 }
    }
  }

  /// Requires the lock.
  private func lookForEnd(leavesStatus: Bool) -> End? {
    guard end == nil || !(isReaped || leavesStatus) else { return end }
    let answer = Self.wait(descriptor, process, leavesStatus: leavesStatus)
    switch answer {
    case .ended?: isReaped = !leavesStatus
    case .unknown?: isReaped = true
    case nil: break
    }
    // An end that was seen before other code reaped the child is still correct.
    if end == nil { end = answer }
    return end
  }

  /// Whether the ID still refers to this process because it has not been reaped.
  private var isUnreaped: Bool { lock.withLock { !isReaped && isThere } }

  /// Whether the child can be waited for because neither this nor other code has reaped it; requires the lock.
  private var isThere: Bool {
    var code: Int32 = 0
    var status: Int32 = 0
    return
      (try? SystemCall.processWait.makeUninterrupted { crl_process_wait(descriptor.number, 1, &code, &status) }) != nil
  }

  /// Sends a signal to the child's ID, which cannot be reused because no source reaps the child in the meantime.
  package func send(signal: Int32) throws(SystemError) {
    lock.lock()
    defer { lock.unlock() }
    var code: Int32 = 0
    var status: Int32 = 0
    do throws(SystemError) {
      guard !isReaped else { throw SystemError(call: SystemCall.processKill.rawValue, number: ESRCH) }
      _ = try SystemCall.processWait.makeUninterrupted { crl_process_wait(descriptor.number, 1, &code, &status) }
    } catch {
      throw SystemError(call: SystemCall.processKill.rawValue, number: error.number == ECHILD ? ESRCH : error.number)
    }
    _ = try SystemCall.processKill.make { kill(process, signal) < 0 ? -errno : 0 }
  }

  private static func wait(_ descriptor: OwnedDescriptor, _ process: Int32, leavesStatus: Bool) -> End? {
    var code: Int32 = 0
    var status: Int32 = 0
    do throws(SystemError) {
      let answer = try SystemCall.processWait.makeUninterrupted {
        crl_process_wait(descriptor.number, leavesStatus ? 1 : 0, &code, &status)
      }
      return answer == 0 ? nil : .ended(ChildProcessSource.ExitStatus(code: code, status: status))
    } catch {
      return .unknown(error.number == ECHILD ? .reapedElsewhere(process) : .system(process, error))
    }
  }
}

extension ChildProcess {
  /// The children that sources wait for, keyed by process ID.
  private final class Table: @unchecked Sendable {
    // Sendable: the lock guards all mutable state.

    struct Entry {
      weak var child: ChildProcess?
    }

    let lock = Lock()
    var entries: [Int32: Entry] = [:]
    /// The number of entries at which those of released children are removed.
    var limit = 16

    /// Requires the lock.
    func enter(_ child: ChildProcess) {
      if entries.count >= limit {
        entries = entries.filter { $0.value.child != nil }
        limit = max(16, 2 * entries.count)
      }
      entries[child.process] = Entry(child: child)
    }
  }

  private static let ours = PerProcess { Table() }

  /// Returns the child with a process ID, which is shared by all of its sources.
  ///
  /// An ID can be reused after its process has been reaped, and then refers to another child.
  ///
  /// - Complexity: Amortized O(1).
  static func find(_ process: Int32) throws(ChildProcessError) -> ChildProcess {
    let table = ours.value
    // None of the calls under this lock blocks, and the end of a child does not take it.
    table.lock.lock()
    defer { table.lock.unlock() }
    if let known = table.entries[process]?.child, known.isUnreaped { return known }
    let opened = try open(process)
    table.enter(opened)
    return opened
  }

  /// Returns whether a source or another object of this library manages the child with a process ID.
  static func isKnown(_ process: Int32) -> Bool {
    let table = ours.value
    let child = table.lock.withLock { table.entries[process]?.child }
    return child?.isUnreaped == true
  }

  /// Registers a child that was just created, with its descriptor.
  package static func adopt(_ process: Int32, _ descriptor: OwnedDescriptor) -> ChildProcess {
    let child = ChildProcess(process, descriptor)
    let table = ours.value
    table.lock.withLock { table.enter(child) }
    return child
  }

  private static func open(_ process: Int32) throws(ChildProcessError) -> ChildProcess {
    do throws(SystemError) {
      guard process > 0 else { throw SystemError(call: SystemCall.processDescriptor.rawValue, number: ESRCH) }
      let descriptor = OwnedDescriptor(try SystemCall.processDescriptor.make { crl_process_open(process) })
      var code: Int32 = 0
      var status: Int32 = 0
      _ = try SystemCall.processWait.makeUninterrupted { crl_process_wait(descriptor.number, 1, &code, &status) }
      return ChildProcess(process, descriptor)
    } catch {
      switch error.number {
      case ESRCH: throw .noSuchProcess(process)
      case ECHILD: throw .notAChild(process)
      default: throw .system(process, error)
      }
    }
  }
}
