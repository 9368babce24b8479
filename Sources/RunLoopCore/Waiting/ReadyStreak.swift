// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// How often a descriptor was found ready in waits that followed each other, as a value.
///
/// A descriptor that is always ready may only have much to read. After many services in a row each is checked, and the
/// descriptor is reported if nothing was read in any of them.
struct ReadyStreak {
  /// After how many services in a row they are checked.
  static let suspicion = 1000
  /// In how many of those nothing was read when that is reported.
  static let proof = 32
  /// How many waits may be between two services in a row: what else is ready has its turns.
  private static let gap: UInt64 = 8

  private var count = 0
  private var evidence = 0
  private var lastWait: UInt64 = 0
  private var isReported = false

  /// Returns whether to look at this service.
  @inline(__always)
  mutating func noteService(inWait wait: UInt64) -> Bool {
    count = wait &- lastWait <= Self.gap ? count &+ 1 : 1
    lastWait = wait
    return count > Self.suspicion && !isReported
  }

  /// Notes whether something was read, as far as that is known, in a service that was looked at; returns whether to
  /// report it, which is done once.
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

extension RunLoop {
  /// Calls the source of a descriptor that has been ready for very long, and sees whether it reads.
  @inline(never)
  func serveSuspect(
    _ source: DescriptorSource, _ events: DescriptorSource.Events, _ mode: ModeState, _ call: () -> Bool
  ) -> Bool {
    let descriptor = source.descriptor
    // A writer, and the counter that stands in for a file, are not read.
    let isExempt = events == .writable || source.carriedItem?.isAlwaysReady == true
    var check = crl_read_check()
    if !isExempt { crl_read_check_begin(&check, descriptor) }
    let isHandled = call()
    // A source that has ended or is paused is not called again for this.
    let wasRead = isExempt || crl_read_check_end(&check, descriptor) != 0 || !source.isValid || source.isPaused
    let isProven = table.locked { mode.pollSet?.noteSuspect(descriptor, wasRead: wasRead) ?? false }
    guard isProven else { return isHandled }
    crl_face_note_unread(recorder, descriptor, source.heldCode { source.carriedItem?.keepAliveCode ?? source.code })
    let name = source.carriedItem.map { "\(type(of: $0.keepAliveIdentity)) (\($0.keepAliveDetail))" }
    Diagnostic.unread.report(
      "\(name ?? "descriptor \(descriptor)") was reported \(events) in more than \(ReadyStreak.suspicion) waits in a row "
        + "of the run loop of \(threadDescription) in the mode \(mode.name), and its handler has read nothing: the loop "
        + "never sleeps; read what is there, and at the end or after an error pause or invalidate the source")
    return isHandled
  }
}
