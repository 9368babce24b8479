// SPDX-License-Identifier: Apache-2.0

/// What a terminal has in the main loop beside its descriptors, while it is taken.
@MainActor
struct TerminalTimers {
  /// Fires when input was held back for as long as it may be.
  let escape: EscapeTimer
  /// Fires if the kernel did not stop the process, as it does not in an orphaned process group.
  let resume: EscapeTimer
  /// Fires when the terminal has not said in time how wide characters are.
  let measuring: EscapeTimer
  let capturedOutput = CapturedOutput()

  func invalidate() {
    for timer in [escape, resume, measuring] { timer.invalidate() }
    capturedOutput.invalidate()
  }
}
