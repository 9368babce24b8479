// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Naming the user's code in the record of a call-out whose closure belongs to this package: higher layers report what
// they are about to call. Code that may run within one of the user's own call-outs, such as a function that the user
// calls, reports nothing, because that call-out already has a name. All of this applies only while recording is active.

/// Names the function of a closure that is about to be called.
///
/// - Parameter holder: A structure that contains only the user's closure as it was passed in; generic code would wrap
///   a closure that is passed to it directly.
@inline(__always)
package func noteCall<Holder>(of holder: @autoclosure () -> Holder?) {
  if Instruments.record { nameCall(of: holder) }
}

/// A separate function so that its generic metadata is only looked up during recording: it is not specialised when it
/// is called from another module.
@inline(never)
private func nameCall<Holder>(of holder: () -> Holder?) {
  if let holder = holder() { crl_record_name(ClosureCode.first(of: holder)) }
}

/// Names the type of a value, such as a delegate, of which a method is about to be called.
///
/// The record does not show which method it is.
@inline(__always)
package func noteCall(on type: @autoclosure () -> Any.Type?) {
  if Instruments.record, let type = type() {
    // The type is represented by its metadata accessor function.
    crl_record_name(crl_type_code(unsafeBitCast(type, to: UnsafeRawPointer.self)))
  }
}

/// Names the place that requested what is about to be called, if the code itself cannot be identified.
///
/// - Parameter origin: The call site of the public function.
@inline(__always)
package func noteCall(for origin: @autoclosure () -> Origin) {
  guard Instruments.record else { return }
  let site = origin().site
  if site != 0 { crl_record_name(site | CRL_CODE_PLACE) }
}

/// A closure without arguments, in the form expected by ``noteCall(of:)``.
package struct CalledBody {
  let body: () -> Void

  package init(_ body: @escaping () -> Void) { self.body = body }
}
