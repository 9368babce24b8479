// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Names the user's code in the record of a call-out whose own code belongs to this package: the layers above report
// what they are about to call. Code that may run within a call-out of the user's own, such as a function that the user
// calls, reports nothing, because that call-out is named already. Nothing is done unless something records.

/// Names the function of a closure that is about to be called.
///
/// - Parameter holder: A structure that contains only the user's closure, as it was passed: a closure that is handed to
///   generic code directly would be wrapped.
@inline(__always)
package func noteCall<Holder>(of holder: @autoclosure () -> Holder?) {
  if Instruments.record { nameCall(of: holder) }
}

/// A function of its own, so that its type is looked up only while something records: called from another module it is
/// not specialised.
@inline(never)
private func nameCall<Holder>(of holder: () -> Holder?) {
  if let holder = holder() { crl_record_name(ClosureCode.first(of: holder)) }
}

/// Names the type of a value one of whose methods is about to be called, such as a delegate's.
///
/// The record does not show which of its methods that is.
@inline(__always)
package func noteCall(on type: @autoclosure () -> Any.Type?) {
  if Instruments.record, let type = type() {
    // The function that finds the type's metadata represents the type.
    crl_record_name(crl_type_code(unsafeBitCast(type, to: UnsafeRawPointer.self)))
  }
}

/// Names the place that asked for what is about to be called, if it is unknown whose code that is.
///
/// - Parameter origin: Where the public function was called from.
@inline(__always)
package func noteCall(for origin: @autoclosure () -> Origin) {
  guard Instruments.record else { return }
  let site = origin().site
  if site != 0 { crl_record_name(site | CRL_CODE_PLACE) }
}

/// A closure without arguments, in the form that ``noteCall(of:)`` takes.
package struct CalledBody {
  let body: () -> Void

  package init(_ body: @escaping () -> Void) { self.body = body }
}
