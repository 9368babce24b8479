// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// A place in the user's code from which work originates.
///
/// It is the call site of a public function. It is determined only while recording is active and otherwise costs
/// nothing. The functions that determine it are never inlined into their callers.
package struct Origin: Sendable {
  /// A return address, or zero.
  package let site: UInt64

  package init(site: UInt64) { self.site = site }

  /// An unknown place.
  package static let unknown = Origin(site: 0)

  /// The same place, marked to indicate that the caller waits until the work is done.
  package var waits: Origin { Origin(site: site == 0 ? 0 : site | 1 << 63) }

  /// Records the calling thread's current activity as the cause of a later call-out, if recording is active.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameter tag: Distinguishes call-outs with the same item address.
  @inline(__always)
  static func note(_ item: AnyObject, tag: @autoclosure () -> UInt64, site: @autoclosure () -> UInt64) {
    if Instruments.record { crl_origin_note_here(itemAddress(item), tag(), site()) }
  }

  /// Converts a number to a tag, which is never zero.
  static func tag(_ number: UInt64) -> UInt64 { number | 1 << 63 }

  /// Records that a timer was added to a loop or moved.
  @inline(__always)
  static func note(_ timer: Timer, site: @autoclosure () -> UInt64) {
    note(timer, tag: crl_origin_tag(), site: site())
  }
}

/// The code of a closure: the function pointer in the first of its two words.
///
/// A closure stored by generic code begins with a thunk; the call site of its post then represents it.
package enum ClosureCode {
  /// Returns the first word of a structure that contains a closure and nothing else, or zero for any other size.
  ///
  /// The bit cast does not retain the closure. Its sizes are checked before, because a wrong one would end the process.
  @inline(__always)
  package static func first<Holder>(of holder: Holder) -> UInt64 {
    guard MemoryLayout<Holder>.size == MemoryLayout<(UInt64, UInt64)>.size else { return 0 }
    return unsafeBitCast(holder, to: (UInt64, UInt64).self).0
  }

  /// Names the user's code in the record of the calling thread's current call-out.
  ///
  /// For layers whose own closure calls the user's. Until this is called, the record names the layer's closure.
  package static func isCalled(_ function: UnsafeRawPointer?) {
    if crl_level_get() >= CRL_RECORD.rawValue { crl_record_name(UInt64(UInt(bitPattern: function))) }
  }
}

extension Block {
  /// The address of the closure's function.
  @inline(__always)
  var code: UInt64 { ClosureCode.first(of: self) }
}

extension LoopJob {
  /// The address of the job in memory.
  var address: UInt64 { UInt64(UInt(bitPattern: unsafeBitCast(job, to: UnsafeRawPointer.self))) }

  /// The function that the job resumes.
  ///
  /// It is stored after the job's header, flags and identity.
  var code: UInt64 {
    let address = unsafeBitCast(job, to: UnsafeRawPointer.self)
    return MemoryLayout<UInt>.size == 8 ? address.load(fromByteOffset: 56, as: UInt64.self) : 0
  }
}

/// Returns the address that identifies an item in a record.
@inline(__always)
func itemAddress(_ item: AnyObject) -> UInt64 { UInt64(UInt(bitPattern: Unmanaged.passUnretained(item).toOpaque())) }
