// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
package import RunLoopCore

// A stand-in loop brings its own thread object, because the object's loop, attachments and waiting threads belong
// either to the stand-in or to the thread's own object.
extension Thread {
  /// Runs a body on the calling thread with a loop in place of the thread's own, and then ends that loop.
  ///
  /// - Parameter asMain: Whether code in the body sees this thread as the main thread and the loop as the main loop.
  package static func withStandIn<Value, Failure: Error>(
    _ loop: RunLoop, asMain: Bool, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    watchForks()
    let own = RunLoop.setAsideCurrent(for: loop, asMain: asMain)
    let ownObject = crl_object_slot_get()
    let object = Thread(foreign: RunLoop.callingThreadID, isMain: false, promise: LoopPromise(loop))
    crl_object_slot_set(Unmanaged.passUnretained(object).toOpaque())
    object.promise.install()
    defer {
      // Not announced, because the thread keeps running.
      object.endMain(onThread: true)
      crl_object_slot_set(ownObject)
      RunLoop.takeBack(own)
    }
    return try body()
  }

  /// Whether this is the calling thread's object and stands in for the main thread.
  var standsInForMain: Bool { RunLoop.hasMainStandIn && Thread.current === self }
}
