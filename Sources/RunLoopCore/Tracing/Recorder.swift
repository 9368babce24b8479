// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// A loop publishes its state in its face and, while it records, its events in its ring, for code that inspects it from
// outside. The hot paths are in CRunLoopRecorder.c; the layout is in CRunLoopInstruments.h.
//
// `tracing` selects the additional steps of a call-out, and any thread may change it. The loop reads it at the start of
// a pass and caches whether there are any, which makes the check in a call-out a comparison and a branch.

/// Whether the instruments are compiled in, and whether they are recording.
enum Instruments {
  /// `false` if compiled with a flag that measures the cost of the instruments.
  static var areBuilt: Bool {
    @inline(__always) get {
      #if RUNLOOP_WITHOUT_INSTRUMENTS
        false
      #else
        true
      #endif
    }
  }

  /// Whether the process records (thread-safe).
  static var record: Bool {
    @inline(__always) get { areBuilt && _slowPath(crl_level_get() >= CRL_RECORD.rawValue) }
  }
}

/// Flags for what a loop's call-outs do in addition to the call.
enum Tracing {
  static let off: UInt8 = 0
  /// The face shows the number and kind of the innermost call-out.
  static let watch: UInt8 = 1
  /// Each call-out has a record.
  static let record: UInt8 = 2
  static let levels: UInt8 = 3
  /// The trace hook, set by a test or by the laboratory, is called.
  static let hook: UInt8 = 4
  /// A level that does not exist.
  static let unknownLevel = UInt32.max
}

/// A description of a call-out for the instruments.
struct CallNote {
  /// The kind with which the trace hook is called, or `nil` if it is not called.
  let hook: RunLoop.CallOutKind?
  /// The address of the user's function.
  var code: UInt64 = 0
  /// The item's address, or the post's sequence number.
  var item: UInt64 = 0
  /// The tag under which the cause of the call-out is recorded along with the address, or 0 if it is not.
  var tag: UInt64 = 0
}

extension RunLoop {
  /// Makes a call-out, and records it as required by the instruments' level.
  ///
  /// Must be called on the loop's thread.
  ///
  /// - Parameters:
  ///   - kind: The kind of call-out, as numbered in the layout.
  ///   - mode: The current mode.
  ///   - note: Describes the call. Evaluated only if the call is recorded.
  @inline(__always)
  func calling<Result>(
    _ kind: crl_kind, _ mode: ModeState, _ note: @autoclosure () -> CallNote, _ body: () -> Result
  ) -> Result {
    guard Instruments.areBuilt, _slowPath(isTraced) else { return body() }
    if isOnlyWatched {
      crl_watch_begin(recorder, face, kind.rawValue)
      let result = body()
      crl_watch_end(recorder, face)
      return result
    }
    if tracing.load(ordering: .relaxed) == Tracing.record {
      beginRecord(kind, note())
      let result = body()
      crl_record_end(recorder)
      return result
    }
    let note = note()
    let level = beginHooked(kind, mode, note)
    let result = body()
    endHooked(mode, note.hook, level)
    return result
  }

  @inline(__always)
  private func beginRecord(_ kind: crl_kind, _ note: CallNote) {
    let kind = UInt64(kind.rawValue) << UInt64(CRL_KIND_SHIFT)
    if note.tag == 0 { return crl_record_begin(recorder, kind, note.code, note.item) }
    crl_record_begin_caused(recorder, kind, note.code, note.item, note.tag)
  }

  @inline(never)
  private func beginHooked(_ kind: crl_kind, _ mode: ModeState, _ note: CallNote) -> UInt8 {
    let level = tracing.load(ordering: .relaxed) & Tracing.levels
    if let hook = note.hook { trace(.callOut(hook), mode) }
    if level == Tracing.watch { crl_watch_begin(recorder, face, kind.rawValue) }
    if level == Tracing.record { beginRecord(kind, note) }
    return level
  }

  @inline(never)
  private func endHooked(_ mode: ModeState, _ hook: CallOutKind?, _ level: UInt8) {
    if level == Tracing.watch { crl_watch_end(recorder, face) }
    if level == Tracing.record { crl_record_end(recorder) }
    if let hook { trace(.callOutEnded(hook), mode) }
  }
}

/// Makes a call-out that can happen on any thread, and records it if that thread's loop records.
///
/// The thread that adds or removes a source makes its schedule and cancel call-outs.
@inline(__always)
func callingOnThisThread(_ kind: crl_kind, code: @autoclosure () -> UInt64, item: UInt64, _ body: () -> Void) {
  guard Instruments.areBuilt, let recorder = crl_thread_recorder_get(), recorder.pointee.level > 0 else {
    return body()
  }
  crl_watcher_stir()
  // The call may be made within another call-out.
  let outer = crl_recorder_nest(recorder)
  if recorder.pointee.level >= CRL_RECORD.rawValue {
    crl_record_begin(recorder, UInt64(kind.rawValue) << UInt64(CRL_KIND_SHIFT), code(), item)
    body()
    crl_record_end(recorder)
  } else {
    crl_watch_begin(recorder, recorder.face, kind.rawValue)
    body()
    crl_watch_end(recorder, recorder.face)
  }
  crl_recorder_unnest(recorder, outer)
}
