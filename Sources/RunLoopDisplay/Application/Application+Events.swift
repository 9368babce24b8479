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
  /// Handles what is queued: the one call-out of the source 0.
  func handleEvents() {
    if events.count > 0 { trace?.applicationDid(.source0(events: events.count)) }
    while end == nil, let entry = events.takeFirst() {
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

  /// Lets the window have the device's size; what is held down is cancelled if it is another.
  func resize(to size: Size) {
    let size = Size(width: max(1, size.width), height: max(1, size.height))
    if window.frame.size != size { window.cancelTouches { _ in true } }
    window.frame = Rect(origin: .zero, size: size)
    window.screen.reset(to: size)
    setNeedsCommit()
  }
}
