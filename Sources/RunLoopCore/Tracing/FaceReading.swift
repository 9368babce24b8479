// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import RunLoopLibC

/// The state in a loop's face at one moment, for any thread.
package struct FaceReading: Sendable {
  /// The kernel's number of the loop's thread; zero before the thread has asked for the loop.
  package let thread: Int32
  /// The level that the loop has taken up.
  package let level: Int32
  /// How many runs are active, one within the other.
  package let depth: Int
  package let isSleeping: Bool
  package let isHosted: Bool
  package let isVirtual: Bool
  package let isMain: Bool
  package let hasEnded: Bool
  /// In whose loop it is a guest.
  package let host: crl_host
  /// The sleeps and looks, as of the last sleep.
  package let waits: UInt64
  package let sleeps: UInt64
  /// The blocks, jobs and hand-offs so far, and how many of them have been taken to be run or dropped.
  package let posted: UInt64
  package let served: UInt64

  /// How many blocks, jobs and hand-offs wait.
  package var waitingBlocks: Int { posted > served ? Int(clamping: posted - served) : 0 }
}

extension RunLoop {
  /// The current state of the loop; can be used from any thread.
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

  /// The name of the loop's thread: its object's name, `main` for the first thread, otherwise the kernel's; nil before
  /// it has one.
  ///
  /// Can be used from any thread.
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
  /// The complete records of the loop's call-outs and sleeps, in no order; there are none unless it records, or has
  /// recorded.
  ///
  /// Can be used from any thread.
  package var recordedCallOuts: [crl_record] {
    [crl_record](unsafeUninitializedCapacity: Int(CRL_RECORDS)) { buffer, count in
      count = Int(crl_records_copy(recorder, buffer.baseAddress))
    }
  }

  /// What the loop has summed up itself, from the level watch on; can be used from any thread.
  package var sums: crl_sums {
    var sums = crl_sums()
    crl_sums_copy(recorder, &sums)
    return sums
  }
}

/// The address of a function as in Core Foundation's descriptions, with what the dynamic linker knows about it.
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
  /// The address of a function of the item, unless the function has been released.
  ///
  /// Can be called from any thread, under no lock: this call may release what was invalidated meanwhile.
  func heldCode(_ code: () -> UInt64) -> UInt64 {
    guard hold() else { return 0 }
    defer { letGo() }
    return code()
  }
}
