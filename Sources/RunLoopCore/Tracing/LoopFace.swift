// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// What a loop does now, as its face shows at every level. Called on the loop's thread, unless noted otherwise.
extension RunLoop {
  /// Takes up the level of the instruments if it has changed; called at the top of each pass.
  @inline(__always)
  func takeUpLevel() {
    if Instruments.areBuilt, _slowPath(crl_level_differs(takenLevel.load(ordering: .relaxed)) != 0) { changeLevel() }
  }

  @inline(never)
  private func changeLevel() {
    let wanted = crl_level_get()
    let level = crl_recorder_take_up(recorder)
    // Stored before `tracing` is read: a thread that sets a hook changes `tracing` first, and this afterwards.
    takenLevel.store(wanted, ordering: .sequentiallyConsistent)
    if level >= CRL_RECORD.rawValue {
      table.withLock { table in
        for mode in table.modes.values {
          for membership in mode.sources.values { membership.item.noteSignalsIfRecorded() }
        }
      }
    }
    // The mode of the current run has no number yet. This may be called deep in the run.
    noteRun(isSame: true)
    tracing.bitwiseAnd(Tracing.hook, ordering: .sequentiallyConsistent)
    tracing.bitwiseOr(UInt8(level), ordering: .sequentiallyConsistent)
    noteTracing()
  }

  /// Notes what call-outs do besides the call from now on.
  func noteTracing() {
    let tracing = tracing.load(ordering: .sequentiallyConsistent)
    isTraced = tracing != Tracing.off
    isOnlyWatched = tracing == Tracing.watch
  }

  /// Notes which run is the innermost now.
  @inline(__always)
  func noteRun(isSame: Bool = false) {
    guard Instruments.areBuilt else { return }
    crl_recorder_set_run(
      recorder, innermost.mode?.faceIndex ?? 255, UInt32(truncatingIfNeeded: innermost.depth), isSame ? 1 : 0)
  }

  /// Notes that a run begins, or a pass that a host makes the loop do; returns the number that ends it.
  @inline(__always)
  func beginRun(_ kind: crl_kind, from origin: Origin) -> UInt64 {
    isRecording ? crl_run_begin(recorder, kind.rawValue, origin.site) : 0
  }

  /// Notes that the run has ended.
  @inline(__always)
  func endRun(_ number: UInt64) { if Instruments.areBuilt, number != 0 { crl_run_end(recorder, number) } }

  /// Whether each call-out has a record; can be used from any thread.
  private var isRecording: Bool {
    @inline(__always) get { Instruments.areBuilt && tracing.load(ordering: .relaxed) & Tracing.record != 0 }
  }

  /// Notes that the loop goes to sleep.
  @inline(__always)
  func noteSleep(until deadline: Tick, isHosted: Bool = false) {
    guard Instruments.areBuilt else { return }
    crl_sleep_begin(recorder, deadline.nanoseconds, UInt64(truncatingIfNeeded: waitCount), isHosted ? 1 : 0)
  }

  /// Notes that the loop no longer sleeps, and which descriptor has ended the sleep.
  @inline(__always)
  func noteAwake(by descriptor: Int32 = -1) {
    guard Instruments.areBuilt else { return }
    crl_sleep_end(recorder, descriptor)
    // The code that has ended the sleep is called in this pass.
    takeUpLevel()
  }

  /// Notes which thread wakes the loop, before it is woken; can be called from any thread.
  @inline(__always)
  func noteWaking() { if isRecording { crl_wake_note(recorder) } }

  /// Forgets which thread has woken the loop, before the loop announces that it sleeps.
  @inline(__always)
  func forgetWaking() { if isRecording { crl_wake_forget(recorder) } }

  /// Counts an item of work that has been taken from the queues.
  @inline(__always)
  func noteServed() { if Instruments.areBuilt { crl_served_note(recorder, face) } }

  /// Notes that the loop is the calling thread's from now on.
  func noteThread() {
    var flags: Int32 = 0
    if !isOnSystemTime { flags |= Int32(CRL_FACE_VIRTUAL) }
    if RunLoop.isMainThread { flags |= Int32(CRL_FACE_MAIN) }
    crl_recorder_set_thread(recorder, RunLoop.callingThreadID, flags)
  }

  /// Notes that the loop's thread has ended, or gives the loop up.
  func noteEnd() {
    tracing.bitwiseAnd(Tracing.hook, ordering: .relaxed)
    noteTracing()
    crl_recorder_set_thread(recorder, 0, 0)
  }

  /// Makes the recorder that a loop keeps for its records.
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
  /// The index of the mode's name among those of the process; 255 if there was no room.
  ///
  /// Used on the loop's thread.
  var faceIndex: UInt32 {
    if knownFaceIndex < 0 { knownFaceIndex = Int32(crl_mode_index(name.rawValue)) }
    return UInt32(knownFaceIndex)
  }
}

/// The name of a thread that its object has; the kernel's name may be the beginning of it.
package enum ThreadFace {
  /// Sets the name; can be called from any thread, and for the calling thread even before it has a loop.
  package static func setName(_ name: String, ofThread thread: Int32) { crl_thread_name_set(thread, name) }

  /// Forgets the calling thread's name, because the thread ends.
  package static func forgetName() { crl_thread_name_forget() }

  /// Notes that the calling thread waits for another thread's work; zero means that it no longer waits.
  package static func noteWait(forThread thread: Int32) { crl_face_note_wait(thread) }
}
