// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error that prevents a run loop from being served in a GLib context.
public enum GLibHostError: Error, Hashable, Sendable {
  /// GLib or one of its functions is missing; the associated value is the system's message.
  case libraryNotFound(String)
  /// The thread has no context of its own, and is not the main thread, which has the default context.
  case noContext
  /// Another thread is running the context.
  case contextIsBusy
  /// The loop is already attached to a context.
  case isAttached
  /// The loop cannot be a guest of another loop.
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
