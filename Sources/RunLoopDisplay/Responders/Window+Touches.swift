// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension Window {
  /// Sends a mouse event to the view below the mouse, or to the view that its touch belongs to.
  final func sendMouse(_ event: MouseEvent) {
    switch event.action {
    case .press(let button):
      // The release of an earlier press may have been lost.
      cancelTouches { $0.button == button }
      begin(button, event)
    case .drag(let button):
      guard let touch = update(button, event) else { return }
      application?.gestures.moved(touch)
      send(touch, touch.delivery.move())
    case .release(let button):
      guard let touch = update(button, event) else { return }
      touches.removeAll { $0 === touch }
      application?.gestures.ended(touch)
      send(touch, touch.delivery.end())
      application?.gestures.finish(touch)
    case .move:
      let location = location(of: event)
      application?.gestures.hovered(hitTest(location) ?? self, location)
    case .wheel(let wheel):
      let view = hitTest(location(of: event)) ?? self
      DisplayCallOut.note(view)
      view.wheelTurned(wheel, at: event)
    }
  }

  private func begin(_ button: MouseEvent.Button, _ event: MouseEvent) {
    let location = location(of: event)
    let view = hitTest(location) ?? self
    let touch = Touch(button, event.modifiers, at: location, on: view, in: self)
    touches.append(touch)
    application?.gestures.began(touch)
    send(touch, touch.delivery.begin())
  }

  /// Returns the location of the mouse in the window's coordinates, which start at the origin of its bounds.
  private func location(of event: MouseEvent) -> Point { event.location + bounds.origin }

  private func update(_ button: MouseEvent.Button, _ event: MouseEvent) -> Touch? {
    guard let touch = touches.first(where: { $0.button == button }) else { return nil }
    touch.location = location(of: event)
    touch.modifiers = event.modifiers
    return touch
  }

  /// Cancels the touches that satisfy a condition, for views and gestures, and ignores further events of them.
  final func cancelTouches(where condition: (Touch) -> Bool) {
    for touch in touches where condition(touch) {
      // The views that are called here may cancel other touches.
      guard let index = touches.firstIndex(where: { $0 === touch }) else { continue }
      touches.remove(at: index)
      application?.gestures.cancelled(touch)
      cancelDelivery(touch)
      application?.gestures.finish(touch)
    }
  }

  /// Cancels a touch for its view only, while gestures may continue.
  final func cancelDelivery(_ touch: Touch) { send(touch, touch.delivery.cancel()) }

  private func send(_ touch: Touch, _ action: TouchDelivery.Action) {
    switch action {
    case .nothing: return
    case .began: touch.phase = .began
    case .moved: touch.phase = .moved
    case .ended: touch.phase = .ended
    case .cancelled: touch.phase = .cancelled
    }
    guard let view = touch.view else { return }
    application?.trace?.applicationDid(.touches(touch.phase, view: view.displayName))
    DisplayCallOut.note(view)
    switch touch.phase {
    case .began: view.touchesBegan(touch)
    case .moved: view.touchesMoved(touch)
    case .ended: view.touchesEnded(touch)
    case .cancelled: view.touchesCancelled(touch)
    }
  }
}
