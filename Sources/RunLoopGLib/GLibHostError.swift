// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a run loop is not served in a context of GLib's.
public enum GLibHostError: Error, Hashable, Sendable {
  /// GLib is missing, or lacks a function; with the system's reason.
  case libraryNotFound(String)
  /// The thread has no context of its own, and is not the main thread, whose context the default one is.
  case noContext
  /// Another thread runs the context now.
  case contextIsBusy
  /// The loop is served in a context already.
  case isAttached
  /// The loop cannot be a guest.
  case runLoop(RunLoopError)
}

extension GLibHostError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .libraryNotFound(let reason): "GLib cannot be used: \(reason)"
    case .noContext:
      "the thread has no context of GLib's: make one with g_main_context_new, and push it with "
        + "g_main_context_push_thread_default, or name it"
    case .contextIsBusy: "another thread runs the context of GLib's"
    case .isAttached: "the run loop is served in a context of GLib's already"
    case .runLoop(let error): "the run loop cannot be served in a context of GLib's: \(error)"
    }
  }
}
