// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// How often a descriptor was found ready in waits that followed each other, as a value.
///
/// One that is ready all the time may be one that has much to read. So each service is looked at when there were many
/// in a row, and it is reported if nothing was read in any of those.
struct ReadyStreak {
  /// From how many services in a row on they are looked at.
  static let suspicion = 1000
  /// In how many of those nothing was read when that is reported.
  static let proof = 32
  /// How many waits may be between two services in a row: what else is ready has its turns.
  private static let gap: UInt64 = 8

  private var count = 0
  private var evidence = 0
  private var lastWait: UInt64 = 0
  private var isReported = false

  /// Returns whether this service is to be looked at.
  @inline(__always)
  mutating func noteService(inWait wait: UInt64) -> Bool {
    count = wait &- lastWait <= Self.gap ? count &+ 1 : 1
    lastWait = wait
    return count > Self.suspicion && !isReported
  }

  /// Notes whether something was read in a service that was looked at; true if it is to be reported, which it is once.
  mutating func noteEvidence(wasRead: Bool) -> Bool {
    guard !wasRead else {
      (count, evidence) = (0, 0)
      return false
    }
    evidence += 1
    isReported = evidence >= Self.proof
    return isReported
  }
}

/// What can be known of a descriptor around one service of it, to see whether something was read.
struct ReadCheck {
  private let descriptor: Int32
  private let unread: Int32
  private let began: Int64

  /// The longest service that says something, in nanoseconds: while a longer one goes on, what was read may have come
  /// again.
  private static let longest: Int64 = 200_000

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    unread = crl_unread_count(descriptor)
    began = crl_monotonic_nanoseconds()
  }

  /// Whether something was read, or the descriptor is quiet; nil if that is not known.
  var wasRead: Bool? {
    let duration = crl_monotonic_nanoseconds() - began
    let ready = crl_poll_now(descriptor, Int16(POLLIN))
    guard ready > 0 else { return true }
    let isReadable = ready & Int32(POLLIN) != 0
    switch unread {
    // Of datagrams and connections that wait there is no such number.
    case crl_unread_unknown where isReadable: return true
    case crl_unread_unknown: return false
    default: break
    }
    let rest = crl_unread_count(descriptor)
    if rest < unread { return true }
    return rest > unread || duration > Self.longest ? nil : false
  }
}

extension RunLoop {
  /// Calls the source of a descriptor that has been ready for very long, and sees whether it reads.
  @inline(never)
  func serveSuspect(
    _ source: DescriptorSource, _ events: DescriptorSource.Events, _ mode: ModeState, _ call: () -> Bool
  ) -> Bool {
    let descriptor = source.descriptor
    let check = events == .writable || source.carriedItem?.isAlwaysReady == true ? nil : ReadCheck(descriptor)
    let isHandled = call()
    // A source that has ended or is paused is not called again for this.
    let isOver = !source.isValid || source.isPaused || check == nil
    guard let wasRead = isOver ? true : check?.wasRead else { return isHandled }
    let isProven = table.locked { mode.pollSet?.noteSuspect(descriptor, wasRead: wasRead) ?? false }
    guard isProven else { return isHandled }
    let name = source.carriedItem.map { "\(type(of: $0.keepAliveIdentity)) (\($0.keepAliveDetail))" }
    Diagnostic.unread.report(
      "\(name ?? "descriptor \(descriptor)") was reported \(events) in more than \(ReadyStreak.suspicion) waits in a row "
        + "of the run loop of \(threadDescription) in the mode \(mode.name), and its handler has read nothing: the loop "
        + "never sleeps; read what is there, and at the end or after an error pause or invalidate the source")
    return isHandled
  }
}
