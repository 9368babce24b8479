// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An object that is notified of each step of an application, from the device to the frame.
///
/// It is meant for logs and tests, and has no cost for applications that do not set one.
@MainActor
public protocol ApplicationTrace: AnyObject {
  /// Called when the application made a step, or is about to; see the cases of ``ApplicationStep``.
  func applicationDid(_ step: ApplicationStep)
}

/// A step of an application between the device and the frame.
public enum ApplicationStep: Hashable, Sendable {
  /// The main loop reached an activity of a run in a mode: entry, before waiting, after waiting, or exit.
  case stage(RunLoop.Activity, RunLoop.Mode)
  /// The device read this many bytes. Reported within its source 1.
  case source1(bytes: Int)
  /// The source 0 of the event queue is about to handle this many events.
  case source0(events: Int)
  /// A view is being called with a touch.
  case touches(Touch.Phase, view: String)
  /// A gesture recogniser changed its state.
  case gesture(GestureRecognizer.State)
  /// The action of the recogniser with this name is being called for a state.
  case action(name: String, GestureRecognizer.State)
  /// The window was resized.
  case resize(Size)
  /// A commit laid out views.
  case layout(views: Int)
  /// A commit drew views.
  case draw(views: Int)
  /// A commit was made, and wrote this many bytes to the device.
  case commit(bytes: Int)
}
