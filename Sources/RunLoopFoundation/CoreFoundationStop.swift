// SPDX-License-Identifier: Apache-2.0

public import CoreFoundation
import class RunLoopCore.RunLoop

/// Ends the innermost run of a thread, whichever of the two loops it is a run of.
///
/// While the main loop and Core Foundation's serve each other, a run of the main thread may be either's: this ends the
/// innermost one, from the call-outs of both and from any thread. On other threads it ends Core Foundation's run. Code
/// that does not import this package calls Core Foundation's function, which knows of a run of ours only while that run
/// waits.
///
/// Can be called from any thread. The corresponding Core Foundation function is `CFRunLoopStop`.
public func CFRunLoopStop(_ runLoop: CFRunLoop!) {
  if let runLoop, let service = RunLoop.mainIfMade?.mainService, service.stopInnermost(of: runLoop) { return }
  CoreFoundation.CFRunLoopStop(runLoop)
}
