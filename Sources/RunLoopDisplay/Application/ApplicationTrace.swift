// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An object that watches an application at work: each step from the device to the frame is reported when it is made.
///
/// It is meant for logs and tests. An application without one does no work for it.
@MainActor
public protocol ApplicationTrace: AnyObject {
  /// The application has made a step, or is about to make it; the cases of ``ApplicationStep`` say which.
  func applicationDid(_ step: ApplicationStep)
}

/// A step on the way from the device to the frame.
public enum ApplicationStep: Hashable, Sendable {
  /// The main loop is at a stage of a run in a mode: entry, before waiting, after waiting, or exit.
  case stage(RunLoop.Activity, RunLoop.Mode)
  /// The device has read this many bytes; reported within its source 1.
  case source1(bytes: Int)
  /// The source 0 of the event queue has handled this many events.
  case source0(events: Int)
  /// A view is called with a touch.
  case touches(Touch.Phase, view: String)
  /// A recogniser is in another state.
  case gesture(GestureRecognizer.State)
  /// The action of the recogniser with this name is called for a state.
  case action(name: String, GestureRecognizer.State)
  /// The window has another size.
  case resize(Size)
  /// A commit has laid out views.
  case layout(views: Int)
  /// A commit has made views draw.
  case draw(views: Int)
  /// A commit was made, with this many bytes for the device.
  case commit(bytes: Int)
}
