// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore

/// Names the user's code in the record of the call-out that is about to call it: what the loop has called is ours.
///
/// - Parameter holder: A structure that has nothing but the user's closure.
@inline(__always)
func noteCall<Holder>(of holder: Holder?) {
  if _slowPath(crl_level_get() >= CRL_RECORD.rawValue), let holder { ClosureCode.isCalled(in: holder) }
}
