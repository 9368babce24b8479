// SPDX-License-Identifier: Apache-2.0

/// The items of an open terminal in the main loop besides its descriptors.
@MainActor
struct TerminalTimers {
  /// Fires when input has been held back for the maximum time.
  let escape: EscapeTimer
  /// Fires if the kernel did not stop the process, as in an orphaned process group.
  let resume: EscapeTimer
  /// Fires when the terminal has not reported the widths of characters in time.
  let measuring: EscapeTimer
  let capturedOutput = CapturedOutput()

  func invalidate() {
    for timer in [escape, resume, measuring] { timer.invalidate() }
    capturedOutput.invalidate()
  }
}
