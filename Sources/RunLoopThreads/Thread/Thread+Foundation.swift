// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

// The remaining members of Foundation's class, with the same names.
extension Thread {
  /// Whether the calling thread is the main one.
  ///
  /// The corresponding Foundation property is `isMainThread`.
  public class var isMainThread: Bool { current.isMainThread }

  /// Creates and starts a thread that runs a block.
  ///
  /// If the system cannot create the thread, the block is released without running. The corresponding Foundation
  /// method is `detachNewThread(_:)`.
  public class func detachNewThread(_ block: @escaping @Sendable () -> Void) {
    Thread(block: block).start()
  }

  /// Suspends the calling thread for a number of seconds.
  ///
  /// Zero, negative values and NaN return immediately; infinity sleeps forever. The thread's loop does not run
  /// meanwhile. The corresponding Foundation method is `sleep(forTimeInterval:)`.
  public class func sleep(forTimeInterval seconds: Double) {
    guard seconds > 0 else { return }
    let deadline = Tick.monotonicNow + Int64(saturatingSeconds: seconds)
    let nobodyWakes = Atomic<UInt32>(0)
    while Tick.monotonicNow < deadline { nobodyWakes.futexWait(while: 0, until: deadline) }
  }

  /// The thread's priority, from 0 to 1.
  ///
  /// The default is 0.5.
  ///
  /// It maps to a niceness from 19 to −20. Values that the system rejects are listed in ``ThreadMembers/rejections``.
  /// The corresponding Foundation property is `threadPriority`.
  public var threadPriority: Double {
    get {
      let niceness = Double(configuration.niceness ?? 0)
      return niceness < 0 ? 0.5 - niceness / 40 : 0.5 - niceness / 38
    }
    set {
      let distance = 0.5 - (newValue.isNaN ? 0.5 : min(max(newValue, 0), 1))
      setNiceness(Int((distance < 0 ? distance * 40 : distance * 38).rounded()))
    }
  }

  /// Returns the priority of the calling thread.
  ///
  /// It is the value of the property with the same name. The corresponding Foundation method is `threadPriority()`.
  public class func threadPriority() -> Double { current.threadPriority }

  /// Sets the priority of the calling thread, and returns whether the system accepted it.
  ///
  /// It sets the property with the same name. The corresponding Foundation method is `setThreadPriority(_:)`.
  @discardableResult
  public class func setThreadPriority(_ priority: Double) -> Bool {
    let thread = current
    let rejections = thread.rejections.count
    thread.threadPriority = priority
    return thread.rejections.count == rejections
  }

  /// Whether the process may have several threads.
  ///
  /// Always true, because the system's libraries have threads of their own.
  ///
  /// The corresponding Foundation method is `isMultiThreaded()`.
  public class func isMultiThreaded() -> Bool { true }
}
