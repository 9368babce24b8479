// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

// The other members of Foundation's class, in its spelling.
extension Thread {
  /// Whether the calling thread is the main one.
  ///
  /// The corresponding Foundation property is `isMainThread`.
  public class var isMainThread: Bool { current.isMainThread }

  /// Makes a thread that runs a block, and starts it.
  ///
  /// If the system can make no thread, the block is released and does not run. The corresponding Foundation method is
  /// `detachNewThread(_:)`.
  public class func detachNewThread(_ block: @escaping @Sendable () -> Void) {
    Thread(block: block).start()
  }

  /// Makes the calling thread sleep for a number of seconds.
  ///
  /// Zero, less, and a value that is not a number mean no time; infinity means indefinitely. The thread's loop does not
  /// run meanwhile. The corresponding Foundation method is `sleep(forTimeInterval:)`.
  public class func sleep(forTimeInterval seconds: Double) {
    guard seconds > 0 else { return }
    let deadline = Tick.monotonicNow + Int64(saturatingSeconds: seconds)
    let nobodyWakes = Atomic<UInt32>(0)
    while Tick.monotonicNow < deadline { nobodyWakes.futexWait(while: 0, until: deadline) }
  }

  /// How much the thread is favoured, from 0 to 1; 0.5 is the usual value.
  ///
  /// It corresponds to a niceness from 19 to −20. Values that the system rejects are in ``ThreadMembers/rejections``.
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

  /// How much the calling thread is favoured.
  ///
  /// It is the property of the same name. The corresponding Foundation method is `threadPriority()`.
  public class func threadPriority() -> Double { current.threadPriority }

  /// Sets how much the calling thread is favoured; returns false if the system has rejected it.
  ///
  /// It sets the property of the same name. The corresponding Foundation method is `setThreadPriority(_:)`.
  @discardableResult
  public class func setThreadPriority(_ priority: Double) -> Bool {
    let thread = current
    let rejections = thread.rejections.count
    thread.threadPriority = priority
    return thread.rejections.count == rejections
  }

  /// Whether the process may have several threads: always, because the system's libraries have threads of their own.
  ///
  /// The corresponding Foundation method is `isMultiThreaded()`.
  public class func isMultiThreaded() -> Bool { true }
}
