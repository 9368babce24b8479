// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopThreads

extension RunLoopThreads.Thread {
  /// A dictionary for objects that should live as long as the thread.
  ///
  /// It is always the same dictionary, and is available from any thread, even before the thread starts. By convention,
  /// only the thread itself uses it, because it has no lock. It is released on the thread when it ends, after the
  /// will-exit notification and the thread's loop. The corresponding Foundation property is `threadDictionary`.
  public var threadDictionary: NSMutableDictionary { attachment { ThreadDictionary() }.dictionary }
}

private final class ThreadDictionary: @unchecked Sendable {
  // Sendable: the property is constant, and users of the dictionary are responsible for guarding its contents.
  let dictionary = NSMutableDictionary()
}
