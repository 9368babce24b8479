// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

// Names the user's code in the record of a call-out whose own code is one of this package's: the layers above say what
// they are about to call. Whoever may be within a call-out of the user's own, such as a function that the user calls,
// says nothing, as that call-out is named already. Nothing is done unless something records.

/// Names the function of a closure that is about to be called.
///
/// - Parameter holder: A structure that has nothing but the user's closure, kept as it was given: by itself it would be
///   wrapped to be handed to generic code.
@inline(__always)
package func noteCall<Holder>(of holder: @autoclosure () -> Holder?) {
  if Instruments.record { nameCall(of: holder) }
}

/// By itself, so that its type is looked up only while something records: from another module it is no special case of
/// the generic function.
@inline(never)
private func nameCall<Holder>(of holder: () -> Holder?) {
  if let holder = holder() { crl_record_name(ClosureCode.first(of: holder)) }
}

/// Names the type of a value one of whose methods is about to be called, such as a delegate's.
///
/// Which of its methods that is does not show.
@inline(__always)
package func noteCall(on type: @autoclosure () -> Any.Type?) {
  if Instruments.record, let type = type() {
    // The function that finds its metadata stands for it.
    crl_record_name(crl_type_code(unsafeBitCast(type, to: UnsafeRawPointer.self)))
  }
}

/// Names the place that has asked for what is about to be called, where nobody knows whose code that is.
///
/// - Parameter origin: Where the public function was called from.
@inline(__always)
package func noteCall(for origin: @autoclosure () -> Origin) {
  guard Instruments.record else { return }
  let site = origin().site
  if site != 0 { crl_record_name(site | CRL_CODE_PLACE) }
}

/// A closure without arguments, as ``noteCall(of:)`` takes it.
package struct CalledBody {
  let body: () -> Void

  package init(_ body: @escaping () -> Void) { self.body = body }
}
