// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// What the device calls, within its source 1: events are queued, and nothing else.
extension Application: DisplayDeviceClient {
  /// Queues the events, which source 0 then handles.
  public func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent]) {
    if bytes > 0 { trace?.applicationDid(.source1(bytes: bytes)) }
    guard !events.isEmpty else { return }
    for event in events { self.events.append(.input(event)) }
    items?.eventQueue.signal()
  }

  /// Asks for a commit, if one was postponed.
  public func deviceIsReadyForFrame(_ device: any DisplayDevice) {
    if frame.isWaitingForDevice { setNeedsCommit() }
  }

  /// Asks for a commit that presents everything.
  public func deviceNeedsFrame(_ device: any DisplayDevice) {
    frame.isPresentationForced = true
    setNeedsCommit()
  }

  /// Presents nothing from now on, and makes source 0 cancel what is held down.
  public func deviceWillSuspend(_ device: any DisplayDevice) {
    frame.isSuspended = true
    events.append(.interruption)
    items?.eventQueue.signal()
  }

  /// Asks for a commit that presents everything.
  public func deviceDidResume(_ device: any DisplayDevice) {
    frame.isSuspended = false
    frame.isPresentationForced = true
    setNeedsCommit()
    loop.wakeUp()
  }
}

extension Application {
  /// How many nanoseconds of events are handled in one call-out: the rest waits for the next, so that a long read does
  /// not keep the loop from frames and timers.
  private static let eventBudget: Int64 = 8_000_000

  /// Handles what is queued: the one call-out of the source 0.
  ///
  /// A press waits for the actions of the gestures before it: they may change what it hits, and who follows it. It
  /// waits once, even if these actions cause others.
  func handleEvents() {
    let before = events.count
    let begin = loop.clockNow.nanoseconds
    var isFirst = true
    while end == nil, events.count > 0 {
      if gestures.hasActions, events.holdPress() { return setNeedsCommit() }
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

  /// The actions of gestures were called, though perhaps not those that they caused: events that have waited for them
  /// are handled.
  func gestureActionsWereCalled() {
    events.releasePress()
    guard events.count > 0, let items else { return }
    items.eventQueue.signal()
    loop.wakeUp()
  }

  /// Lets the window have the device's size; what is held down is cancelled if it is another.
  func resize(to size: Size) {
    let size = Size(width: max(1, size.width), height: max(1, size.height))
    if window.frame.size != size { window.cancelTouches { _ in true } }
    window.frame = Rect(origin: .zero, size: size)
    window.screen.reset(to: size)
    setNeedsCommit()
  }
}
