// SPDX-License-Identifier: Apache-2.0

public import CoreFoundation
import class RunLoopCore.RunLoop

/// Stops the innermost run of a thread, whether it is a run of this package's loop or of Core Foundation's.
///
/// While the main loop and Core Foundation's main loop serve each other, the main thread may be inside a run of
/// either. This function stops the innermost one, from the callbacks of both and from any thread. On other threads it
/// stops Core Foundation's run. Code that does not import this package calls Core Foundation's function, which can
/// only stop a run of this package while that run is waiting.
///
/// Can be called from any thread. The corresponding Core Foundation function is `CFRunLoopStop`.
public func CFRunLoopStop(_ runLoop: CFRunLoop!) {
  if let runLoop, let service = RunLoop.mainIfMade?.mainService, service.stopInnermost(of: runLoop) { return }
  CoreFoundation.CFRunLoopStop(runLoop)
}
