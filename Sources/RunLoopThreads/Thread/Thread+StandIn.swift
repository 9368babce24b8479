// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
package import RunLoopCore

// A loop that stands in for the calling thread's own brings its own thread object: the object's loop, its attachments,
// and the threads that wait for it belong to the one or to the other.
extension Thread {
  /// Runs a body on the calling thread with a loop in the place of the thread's own, and ends that loop.
  ///
  /// - Parameter asMain: Whether this is the main thread, and the loop the main loop, for code that runs in the body on
  ///   this thread.
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
      // Not announced: the thread goes on.
      object.endMain(onThread: true)
      crl_object_slot_set(ownObject)
      RunLoop.takeBack(own)
    }
    return try body()
  }

  /// Whether the calling thread is this one, and stands in for the main thread.
  var standsInForMain: Bool { RunLoop.hasMainStandIn && Thread.current === self }
}
