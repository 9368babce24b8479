// SPDX-License-Identifier: Apache-2.0

/// What a terminal has in the main loop beside its descriptors, while it is taken.
@MainActor
struct TerminalTimers {
  /// Fires when input was held back for as long as it may be.
  let escape: EscapeTimer
  /// Fires if the process did not stop, because it is in an orphaned group that nobody could continue.
  let resume: EscapeTimer
  /// Fires when the terminal has not said in time how wide characters are.
  let measuring: EscapeTimer
  let capturedOutput = CapturedOutput()

  func invalidate() {
    for timer in [escape, resume, measuring] { timer.invalidate() }
    capturedOutput.invalidate()
  }
}
