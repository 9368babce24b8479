// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder

/// The names of call-out kinds in the terms of `runloop`.
package enum CallOutName {
  private static let names = [
    "", "block", "perform", "job", "timer", "source0", "source1", "observer", "mainQueue", "schedule", "cancel", "host",
    "sleep", "run",
  ]

  package static func of(_ kind: UInt8) -> String { Int(kind) < names.count ? names[Int(kind)] : "unknown" }

  /// The items of the loop in which this one waits, such as Core Foundation's or GLib's.
  package static let host = of(UInt8(CRL_KIND_HOST.rawValue))

  /// Returns whether a function of the host's library runs the host's loop, so that it and the frames further out are
  /// not part of the host's item.
  package static func runsHost(_ symbol: String) -> Bool {
    symbol.hasPrefix("__CFRUNLOOP_IS_") || runners.contains(symbol)
  }

  /// Functions that libraries export; the others have no names if a library is stripped.
  private static let runners: Set = [
    "CFRunLoopRun", "CFRunLoopRunInMode", "CFRunLoopRunSpecific", "g_main_context_dispatch", "g_main_context_iteration",
    "g_main_loop_run",
  ]
}

extension crl_face {
  /// Whether the loop's thread runs an item of the host's loop, for which there is no record.
  package var isOfHost: Bool {
    let hosted = UInt8(CRL_FACE_HOSTED)
    return UInt32(kind) == CRL_KIND_HOST.rawValue || kind == 0 && flags & (hosted | UInt8(CRL_FACE_SLEEPS)) == hosted
  }
}
