// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopThreads

extension RunLoopThreads.Thread {
  /// A dictionary for objects that should live as long as the thread: the same dictionary each time.
  ///
  /// It is available from any thread, even before the start. By convention only the thread itself uses it, because the
  /// dictionary has no lock. It is released when the thread ends, on it, after the will-exit notification and the
  /// thread's loop. The corresponding Foundation property is `threadDictionary`.
  public var threadDictionary: NSMutableDictionary { attachment { ThreadDictionary() }.dictionary }
}

private final class ThreadDictionary: @unchecked Sendable {
  // Sendable: a constant. What is in the dictionary is for its users to guard.
  let dictionary = NSMutableDictionary()
}
