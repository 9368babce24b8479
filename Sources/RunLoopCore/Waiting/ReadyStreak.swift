// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC

/// Detects a descriptor that is always ready because its handler does not read from it.
///
/// A descriptor may also be ready in many consecutive waits because much data arrives. So after many consecutive
/// services, each further one is checked, and the descriptor is reported if nothing was read in any of them.
struct ReadyStreak {
  /// The number of consecutive services after which each further one is checked.
  static let suspicion = 1000
  /// The number of checked services without a read after which the descriptor is reported.
  static let proof = 32
  /// The maximum number of waits between consecutive services, in which other ready descriptors have their turns.
  private static let gap: UInt64 = 8

  private var count = 0
  private var evidence = 0
  private var lastWait: UInt64 = 0
  private var isReported = false

  /// Records a service, and returns whether to check it for a read.
  @inline(__always)
  mutating func noteService(inWait wait: UInt64) -> Bool {
    count = wait &- lastWait <= Self.gap ? count &+ 1 : 1
    lastWait = wait
    return count > Self.suspicion && !isReported
  }

  /// Records whether anything was read in a checked service, as far as that is known, and returns whether to report the
  /// descriptor, which happens once.
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
  /// Calls the source of a descriptor that has been ready for very long, and checks whether it reads.
  @inline(never)
  func serveSuspect(
    _ source: DescriptorSource, _ events: DescriptorSource.Events, _ mode: ModeState, _ call: () -> Bool
  ) -> Bool {
    let descriptor = source.descriptor
    // Sources that only write, and the counter that represents a file, are never read.
    let isExempt = events == .writable || source.carriedItem?.isAlwaysReady == true
    var check = crl_read_check()
    if !isExempt { crl_read_check_begin(&check, descriptor) }
    let isHandled = call()
    // An invalid or paused source is not called again, so it counts as read.
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
