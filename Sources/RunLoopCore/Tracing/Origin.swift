// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The place in the user's code that work comes from.
///
/// It is the place that the public function was called from. It is read only while something records, and costs nothing
/// otherwise. The functions that read it are never inlined into their callers.
package struct Origin: Sendable {
  /// A return address, or zero.
  package let site: UInt64

  package init(site: UInt64) { self.site = site }

  /// The place is not known.
  package static let unknown = Origin(site: 0)

  /// The same place, for a caller that waits until the work is done.
  package var waits: Origin { Origin(site: site == 0 ? 0 : site | 1 << 63) }

  /// Notes, while something records, what the calling thread is doing as the cause of a later call-out with an address.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameter tag: Distinguishes two call-outs with the same address.
  @inline(__always)
  static func note(_ item: AnyObject, tag: @autoclosure () -> UInt64, site: @autoclosure () -> UInt64) {
    if Instruments.record { crl_origin_note_here(itemAddress(item), tag(), site()) }
  }

  /// A number as a tag, which is never zero.
  static func tag(_ number: UInt64) -> UInt64 { number | 1 << 63 }

  /// Notes that a timer was added to a loop, or moved.
  @inline(__always)
  static func note(_ timer: Timer, site: @autoclosure () -> UInt64) {
    note(timer, tag: crl_origin_tag(), site: site())
  }
}

/// The code of a closure: the function of its two words.
///
/// A closure that generic code has stored begins with a thunk; then the place of its post represents it.
package enum ClosureCode {
  /// The first word of a structure that contains a closure and nothing else.
  ///
  /// A bit cast takes no reference.
  @inline(__always)
  static func first<Holder>(of holder: Holder) -> UInt64 { unsafeBitCast(holder, to: (UInt64, UInt64).self).0 }

  /// Names the user's code in the record of the call-out that the calling thread is in.
  ///
  /// For layers whose own closure calls the user's: the record names the layer's closure until this is called.
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
  /// It is stored behind the job's header, flags and identity.
  var code: UInt64 {
    let address = unsafeBitCast(job, to: UnsafeRawPointer.self)
    return MemoryLayout<UInt>.size == 8 ? address.load(fromByteOffset: 56, as: UInt64.self) : 0
  }
}

/// The address of an item, as it is in a record.
@inline(__always)
func itemAddress(_ item: AnyObject) -> UInt64 { UInt64(UInt(bitPattern: Unmanaged.passUnretained(item).toOpaque())) }
