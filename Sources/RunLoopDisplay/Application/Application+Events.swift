// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// Called by the device within its source 1, which only queues the events.
extension Application: DisplayDeviceClient {
  /// Queues events, which source 0 then handles.
  public func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent]) {
    if bytes > 0 { trace?.applicationDid(.source1(bytes: bytes)) }
    guard !events.isEmpty else { return }
    for event in events { self.events.append(.input(event)) }
    items?.eventQueue.signal()
  }

  /// Requests a commit if one was postponed.
  public func deviceIsReadyForFrame(_ device: any DisplayDevice) {
    if frame.isWaitingForDevice { setNeedsCommit() }
  }

  /// Requests a commit that presents the whole screen.
  public func deviceNeedsFrame(_ device: any DisplayDevice) {
    frame.isPresentationForced = true
    setNeedsCommit()
  }

  /// Stops presenting frames, and makes source 0 cancel all touches.
  public func deviceWillSuspend(_ device: any DisplayDevice) {
    frame.isSuspended = true
    events.append(.interruption)
    items?.eventQueue.signal()
  }

  /// Resumes presenting frames, starting with the whole screen, and makes source 0 cancel all touches.
  public func deviceDidResume(_ device: any DisplayDevice) {
    // There was no notification of a stop by `SIGSTOP`.
    events.append(.interruption)
    items?.eventQueue.signal()
    frame.isSuspended = false
    frame.isPresentationForced = true
    setNeedsCommit()
    loop.wakeUp()
  }
}

extension Application {
  /// The time budget of one call-out for events, in nanoseconds.
  ///
  /// The remaining events are handled in the next call-out, so that a long read does not delay frames and timers.
  private static let eventBudget: Int64 = 8_000_000

  /// Handles the queued events, in the call-out of source 0.
  ///
  /// Presses, wheel events, keys and pastes wait for the pending gesture actions, because these may change the focus,
  /// the view below the mouse and its recognisers. An event waits only once, even if the actions trigger others.
  func handleEvents() {
    let before = events.count
    let begin = loop.clockNow.nanoseconds
    var isFirst = true
    while end == nil, events.count > 0 {
      if gestures.hasActions, events.holdNext() { return setNeedsCommit() }
      if isFirst { trace?.applicationDid(.source0(events: before)) }
      if !isFirst, loop.clockNow.nanoseconds - begin > Self.eventBudget {
        items?.eventQueue.signal()
        return
      }
      isFirst = false
      guard let entry = events.takeFirst() else { return }
      switch entry {
      case .interruption: window.cancelTouches { _ in true }
      case .input(.resize(let size)):
        trace?.applicationDid(.resize(size))
        resize(to: size)
      case .input(.hangUp): terminate(.hungUp)
      case .input(let event):
        DisplayCallOut.note(window)
        window.sendEvent(event)
      }
    }
  }

  /// Handles the events that were waiting for gesture actions, which have now been called.
  func gestureActionsWereCalled() {
    events.releaseNext()
    guard events.count > 0, let items else { return }
    items.eventQueue.signal()
    loop.wakeUp()
  }

  /// Resizes the window to the device's size, and cancels touches if the size changes.
  func resize(to size: Size) {
    let size = Size(width: max(1, size.width), height: max(1, size.height))
    if window.frame.size != size { window.cancelTouches { _ in true } }
    window.frame = Rect(origin: .zero, size: size)
    window.screen.reset(to: size)
    setNeedsCommit()
  }
}
