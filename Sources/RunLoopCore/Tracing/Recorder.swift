// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// What a loop leaves in its face and, while it records, in its ring, for code that looks at it from outside. The hot
// code is C, in CRunLoopRecorder.c; the layout is in CRunLoopInstruments.h.
//
// `tracing` says what a call-out does besides the call, and any thread may change it. The loop looks at it at the top
// of a pass, and keeps for its call-outs whether there is anything to do: that check is a comparison and a branch.

/// Whether there are instruments at all, and whether something records now.
enum Instruments {
  /// False with a flag for the gates, which count what the instruments cost.
  static var areBuilt: Bool {
    @inline(__always) get {
      #if RUNLOOP_WITHOUT_INSTRUMENTS
        false
      #else
        true
      #endif
    }
  }

  /// Whether the process records; can be used from any thread.
  static var record: Bool {
    @inline(__always) get { areBuilt && _slowPath(crl_level_get() >= CRL_RECORD.rawValue) }
  }
}

/// What a loop's call-outs do besides the call.
enum Tracing {
  static let off: UInt8 = 0
  /// The number and kind of the innermost call-out are in the face.
  static let watch: UInt8 = 1
  /// Each call-out has a record.
  static let record: UInt8 = 2
  static let levels: UInt8 = 3
  /// The closure of a test or of the laboratory is called.
  static let hook: UInt8 = 4
  /// A level that does not exist.
  static let unknownLevel = UInt32.max
}

/// Describes a call-out to the instruments.
struct CallNote {
  /// The kind that the trace hook is called with; nil if the hook is not called.
  let hook: RunLoop.CallOutKind?
  /// The address of the user's function.
  var code: UInt64 = 0
  /// The item's address, or the sequence number of the post.
  var item: UInt64 = 0
  /// The tag under which the cause of an item's call-out is noted, beside the address; zero if none is.
  var tag: UInt64 = 0
}

extension RunLoop {
  /// Makes a call-out, and notes it as the level of the instruments demands.
  ///
  /// Called on the loop's thread.
  ///
  /// - Parameters:
  ///   - kind: The kind of call-out, by the numbers of the layout.
  ///   - mode: The mode that runs.
  ///   - note: Describes the call; evaluated only if it is recorded.
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

/// Makes a call-out that any thread may make, and notes it if the thread's loop takes notes.
///
/// The schedule and cancel call-outs of a source are made by the thread that adds or removes it.
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
