// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// The loop's current state, shown in its face at every level. Called on the loop's thread unless noted otherwise.
extension RunLoop {
  /// Applies a change of the instruments' level; called at the start of each pass.
  @inline(__always)
  func takeUpLevel() {
    if Instruments.areBuilt, _slowPath(crl_level_differs(takenLevel.load(ordering: .relaxed)) != 0) { changeLevel() }
  }

  @inline(never)
  private func changeLevel() {
    let wanted = crl_level_get()
    let level = crl_recorder_take_up(recorder)
    // Stored before `tracing` is read, because a thread that sets a hook changes `tracing` first and this afterwards.
    takenLevel.store(wanted, ordering: .sequentiallyConsistent)
    if level >= CRL_RECORD.rawValue {
      table.withLock { table in
        for mode in table.modes.values {
          for membership in mode.sources.values { membership.item.noteSignalsIfRecorded() }
        }
      }
    }
    // The mode of the current run has no index yet. This may be called deep inside the run.
    noteRun(isSame: true)
    innermost.lastLook = .never
    tracing.bitwiseAnd(Tracing.hook, ordering: .sequentiallyConsistent)
    tracing.bitwiseOr(UInt8(level), ordering: .sequentiallyConsistent)
    noteTracing()
  }

  /// Updates the flags for what call-outs do in addition to the call.
  func noteTracing() {
    let tracing = tracing.load(ordering: .sequentiallyConsistent)
    isTraced = tracing != Tracing.off
    isOnlyWatched = tracing == Tracing.watch
  }

  /// Notes which run is the innermost.
  @inline(__always)
  func noteRun(isSame: Bool = false) {
    guard Instruments.areBuilt else { return }
    crl_recorder_set_run(
      recorder, innermost.mode?.faceIndex ?? 255, UInt32(truncatingIfNeeded: innermost.depth), isSame ? 1 : 0)
  }

  /// Notes whether the thread runs remaining blocks outside every run, which counts as a run for the instruments.
  func noteDraining(_ isDraining: Bool) {
    guard Instruments.areBuilt, innermost.depth == 0 else { return }
    crl_recorder_set_run(recorder, 255, isDraining ? 1 : 0, 0)
  }

  /// Notes the start of a run, or of a pass made for a host, and returns the number with which to end it.
  @inline(__always)
  func beginRun(_ kind: crl_kind, from origin: Origin) -> UInt64 {
    isRecording ? crl_run_begin(recorder, kind.rawValue, origin.site) : 0
  }

  @inline(__always)
  func endRun(_ number: UInt64) { if Instruments.areBuilt, number != 0 { crl_run_end(recorder, number) } }

  /// Whether call-outs are recorded (thread-safe).
  private var isRecording: Bool {
    @inline(__always) get { Instruments.areBuilt && tracing.load(ordering: .relaxed) & Tracing.record != 0 }
  }

  /// Notes that the loop goes to sleep.
  @inline(__always)
  func noteSleep(until deadline: Tick, isHosted: Bool = false) {
    guard Instruments.areBuilt else { return }
    crl_sleep_begin(recorder, deadline.nanoseconds, UInt64(truncatingIfNeeded: waitCount), isHosted ? 1 : 0)
  }

  /// Notes that the loop is awake, and which descriptor ended the sleep.
  @inline(__always)
  func noteAwake(by descriptor: Int32 = -1) {
    guard Instruments.areBuilt else { return }
    crl_sleep_end(recorder, descriptor)
    // The code that ended the sleep is called in this pass.
    takeUpLevel()
  }

  /// Notes that the host's loop runs its own items on the loop's thread; called for each of the host's passes.
  package func noteHostRuns() {
    guard Instruments.areBuilt else { return }
    // The host can make many passes before this loop makes one.
    takeUpLevel()
    crl_host_runs(recorder)
  }

  /// Notes that the host's loop waits.
  package func noteHostWaits() { if Instruments.areBuilt { crl_host_waits(recorder) } }

  /// Notes that the host's loop has returned.
  package func noteHostReturns() { if Instruments.areBuilt { crl_host_ends(recorder) } }

  /// Whether the host runs its own items, and not this loop, during a hosted sleep.
  var isHostRunning: Bool {
    guard Instruments.areBuilt else { return false }
    return Int32(crl_recorder_flags(recorder)) & Int32(CRL_FACE_HOSTED | CRL_FACE_SLEEPS) == Int32(CRL_FACE_HOSTED)
  }

  /// Records the end of a wait that began at `begun` and in which the loop checked its descriptors.
  ///
  /// A descriptor that the wait finds ready immediately may have been ready since the previous check.
  @inline(never)
  func noteLook(begun: Tick) {
    let now = tickNow
    let gap = innermost.lastLook == .never ? 0 : begun - innermost.lastLook
    innermost.starvation = hasFoundDescriptors && gap >= CRL_HANG && now - begun < 1_000_000 ? gap : 0
    innermost.lastLook = now
  }

  /// Notes a descriptor that may have been ready for long before the loop looked.
  @inline(never)
  func noteStarvation(of source: DescriptorSource) {
    crl_late_note(recorder, innermost.starvation, source.heldCode { source.code }, 1)
    innermost.starvation = 0
  }

  /// Notes which thread wakes the loop, before waking it; can be called from any thread.
  @inline(__always)
  func noteWaking() { if isRecording { crl_wake_note(recorder) } }

  /// Clears the thread that woke the loop, before the loop announces a sleep.
  @inline(__always)
  func forgetWaking() { if isRecording { crl_wake_forget(recorder) } }

  /// Counts an entry that was taken from the queues.
  @inline(__always)
  func noteServed() { if Instruments.areBuilt { crl_served_note(recorder, face) } }

  /// Notes that the loop now belongs to the calling thread.
  func noteThread() {
    var flags: Int32 = 0
    if !isOnSystemTime { flags |= Int32(CRL_FACE_VIRTUAL) }
    if RunLoop.isMainThread { flags |= Int32(CRL_FACE_MAIN) }
    crl_recorder_set_thread(recorder, RunLoop.callingThreadID, flags)
  }

  /// Notes that the loop's thread has ended or given up the loop.
  func noteEnd() {
    tracing.bitwiseAnd(Tracing.hook, ordering: .relaxed)
    noteTracing()
    crl_recorder_set_thread(recorder, 0, 0)
  }

  /// Takes the recorder in which a loop keeps its records.
  static func takeRecorder() -> UnsafeMutablePointer<crl_recorder> {
    guard let recorder = crl_recorder_take(nil) else { fatalError("a run loop always has a face") }
    return recorder
  }
}

extension UnsafeMutablePointer<crl_recorder> {
  /// The face, which every recorder has.
  var face: UnsafeMutablePointer<crl_face> { pointee.face.unsafelyUnwrapped }
}

extension ModeState {
  /// The index of the mode's name among those of the process, or 255 if the table is full.
  ///
  /// Must be used on the loop's thread.
  var faceIndex: UInt32 {
    if knownFaceIndex < 0 { knownFaceIndex = Int32(crl_mode_index(name.rawValue)) }
    return UInt32(knownFaceIndex)
  }
}

/// The full name of a thread, of which the kernel's name may be a prefix.
package enum ThreadFace {
  /// Sets a thread's name; can be called from any thread, even before the thread has a loop.
  package static func setName(_ name: String, ofThread thread: Int32) { crl_thread_name_set(thread, name) }

  /// Clears the calling thread's name because the thread ends.
  package static func forgetName() { crl_thread_name_forget() }

  /// Notes that the calling thread waits for another thread's work; 0 means that it has stopped waiting.
  package static func noteWait(forThread thread: Int32) { crl_face_note_wait(thread) }
}
