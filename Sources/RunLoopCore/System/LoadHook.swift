// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// A notification to a higher layer, if that layer is part of the program.
///
/// The layer sets its hooks when it is loaded, before any code of the program runs. C code does this, so a hook is a C
/// function.
package struct LoadHook: Sendable {
  private let kind: crl_hook_kind

  /// A port has become invalid.
  package static let portBecameInvalid = LoadHook(kind: CRL_HOOK_PORT_BECAME_INVALID)
  /// A port of a subclass that adds its own sources was added.
  package static let portCameWithSources = LoadHook(kind: CRL_HOOK_PORT_CAME_WITH_SOURCES)
  /// A thread is about to be started.
  package static let threadWillStart = LoadHook(kind: CRL_HOOK_THREAD_WILL_START)
  /// A thread with a thread object is about to end; this is its last step before its loop ends.
  package static let threadWillExit = LoadHook(kind: CRL_HOOK_THREAD_WILL_EXIT)

  /// A loop that no other thread can access yet was created, and becomes the main loop unless another thread's does.
  ///
  /// The hook may be called more than once. It may change only the loop, which may be released again.
  package static let mainLoopIsMade = LoadHook(kind: CRL_HOOK_MAIN_LOOP_IS_MADE)
  /// The main loop is now accessible to every thread; called once, by the thread that created it.
  package static let mainLoopIsKnown = LoadHook(kind: CRL_HOOK_MAIN_LOOP_IS_KNOWN)
  /// A loop is about to run an empty mode, or to wait, and knows of no other library's loop on its thread.
  ///
  /// Called on the loop's thread.
  package static let loopLooksForOther = LoadHook(kind: CRL_HOOK_LOOP_LOOKS_FOR_OTHER)

  /// Calls the hook on this thread if it is set.
  package func call(_ object: AnyObject) {
    guard let hook = crl_hook_get(kind) else { return }
    withExtendedLifetime(object) { hook(Unmanaged.passUnretained(object).toOpaque()) }
  }

  package typealias Function = @convention(c) (UnsafeMutableRawPointer?) -> Void

  /// Replaces the hook and returns the previous one, for tests.
  package func exchange(_ hook: Function?) -> Function? { crl_hook_exchange(kind, hook) }
}
