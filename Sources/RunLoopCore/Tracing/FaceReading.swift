// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import RunLoopLibC

/// A snapshot of the state in a loop's face, readable from any thread.
package struct FaceReading: Sendable {
  /// The kernel's id of the loop's thread, or zero before the thread has accessed the loop.
  package let thread: Int32
  /// The level that the loop has applied.
  package let level: Int32
  package let depth: Int
  package let isSleeping: Bool
  package let isHosted: Bool
  package let isVirtual: Bool
  package let isMain: Bool
  package let hasEnded: Bool
  /// The kind of host whose guest the loop is.
  package let host: crl_host
  /// The number of waits and of sleeps, as of the last sleep.
  package let waits: UInt64
  package let sleeps: UInt64
  /// The number of blocks, jobs and hand-offs posted so far, and the number taken from the queues.
  package let posted: UInt64
  package let served: UInt64

  /// The number of queued blocks, jobs and hand-offs.
  package var waitingBlocks: Int { posted > served ? Int(clamping: posted - served) : 0 }
}

extension RunLoop {
  /// The loop's current state (thread-safe).
  package var faceReading: FaceReading {
    var copy = crl_face()
    crl_face_copy(face, &copy)
    func has(_ flag: Int) -> Bool { copy.flags & UInt8(flag) != 0 }
    return FaceReading(
      thread: copy.thread, level: Int32(copy.level), depth: Int(copy.depth), isSleeping: has(Int(CRL_FACE_SLEEPS)),
      isHosted: has(Int(CRL_FACE_HOSTED)), isVirtual: has(Int(CRL_FACE_VIRTUAL)), isMain: has(Int(CRL_FACE_MAIN)),
      hasEnded: has(Int(CRL_FACE_ENDED)), host: crl_host(rawValue: copy.host), waits: copy.waits, sleeps: copy.sleeps,
      posted: copy.posted,
      served: copy.served)
  }

  /// The name of the loop's thread, or `nil` if it has none yet.
  ///
  /// It is the name of the thread object, `main` for the main thread, or the kernel's name. Can be used from any
  /// thread.
  package var nameOfThread: String? {
    if faceReading.isMain || threadID == getpid() { return "main" }
    let name = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { bytes in
      crl_recorder_name(recorder, bytes.baseAddress)
      return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    return name.isEmpty ? kernelThreadName(threadID) : name
  }
}

extension RunLoop {
  /// The complete records of the loop's call-outs and sleeps, in no particular order; empty if it has never recorded.
  ///
  /// Can be used from any thread.
  package var recordedCallOuts: [crl_record] {
    [crl_record](unsafeUninitializedCapacity: Int(CRL_RECORDS)) { buffer, count in
      count = Int(crl_records_copy(recorder, buffer.baseAddress))
    }
  }

  /// The loop's own totals, kept at the level `watch` and above (thread-safe).
  package var sums: crl_sums {
    var sums = crl_sums()
    crl_sums_copy(recorder, &sums)
    return sums
  }
}

/// Formats a function's address as Core Foundation's descriptions do, with the dynamic linker's information about it.
func callOutDescription(_ code: UInt64) -> String {
  guard code != 0 else { return "callout = (none)" }
  var found = crl_code()
  let address = "0x" + String(code, radix: 16)
  guard crl_code_find(code, &found) != 0, let path = found.path else { return "callout = \(address)" }
  let image = String(cString: path).split(separator: "/").last.map(String.init) ?? "?"
  let name = found.symbol.map { " " + String(cString: $0) } ?? ""
  return "callout = \(address) (\(image) + 0x\(String(code - found.base, radix: 16)))\(name)"
}

extension ModeItem {
  /// Returns the address of one of the item's functions, or 0 if it has been released.
  ///
  /// Can be called from any thread, with no locks held, because the call may release an item that was invalidated
  /// meanwhile.
  func heldCode(_ code: () -> UInt64) -> UInt64 {
    guard hold() else { return 0 }
    defer { letGo() }
    return code()
  }
}
