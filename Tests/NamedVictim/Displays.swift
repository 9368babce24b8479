// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopDisplayTesting
import RunLoopTransactions
import TestSupport

/// An application that performs one action in each turn.
@MainActor
final class Displays {
  private let terminal = HeadlessTerminal()
  private let window = Window()
  private let button = Button("press", frame: Rect(x: 0, y: 0, width: 5, height: 1))
  private let laidOut = LaidOutView(frame: Rect(x: 0, y: 1, width: 5, height: 1))
  private let drawn = DrawnView(frame: Rect(x: 0, y: 2, width: 5, height: 1))
  private let typed = TypedView(frame: Rect(x: 0, y: 3, width: 5, height: 1))
  private let tapped = View(frame: Rect(x: 0, y: 4, width: 5, height: 1))
  private let field = TextField(frame: Rect(x: 0, y: 5, width: 5, height: 1))
  private let node = DisplayNode(frame: Rect(x: 0, y: 6, width: 5, height: 1))
  private var steps: [() -> Void] = []

  func run() {
    let application = Application(device: terminal, window: window, frameInterval: .zero)
    for view in [button, laidOut, drawn, typed, tapped, field, node.view] { window.addSubview(view) }
    press()
    tap()
    write()
    steps = [
      { [laidOut] in laidOut.setNeedsLayout() }, { [drawn] in drawn.setNeedsDisplay() },
      { [terminal] in terminal.click(at: .zero) }, { [terminal] in terminal.click(at: Point(x: 0, y: 4)) },
      { [typed, terminal] in
        typed.becomeFirstResponder()
        terminal.type("x")
      },
      { [field, terminal] in
        field.becomeFirstResponder()
        terminal.type("y")
      },
      { [node] in
        node.content = DrawnContent()
        node.frame.size.width = 6
      }, { [self] in show() }, { ready() },
    ]
    steps.reverse()
    let timer = Timer(
      timeInterval: 0.02, repeats: true,
      block: MainActor.handler { [weak self] timer in
        guard let step = self?.steps.popLast() else { return timer.invalidate() }
        step()
      })
    application.loop.add(timer, forMode: .common)
    sure(try application.run())
  }

  private func press() { button.action = { [drawn] in _ = drawn } }

  private func tap() { tapped.addGestureRecognizer(TapGestureRecognizer { _ in }) }

  private func write() { field.textDidChange = { [drawn] _ in _ = drawn } }

  private func show() {
    Transaction.begin()
    Transaction.setCompletionBlock { [drawn] in _ = drawn }
    drawn.setNeedsDisplay()
    Transaction.commit()
  }
}

final class LaidOutView: View {
  override func layoutSubviews() { _ = frame }
}

final class DrawnView: View {
  override func draw(_ canvas: inout Canvas) { canvas.draw("drawn", at: .zero) }
}

final class TypedView: View {
  override var canBecomeFirstResponder: Bool { true }
  override func keyPressed(_ key: KeyEvent) { _ = key }
}

struct DrawnContent: NodeContent {
  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) { canvas.draw("node", at: .zero) }
}
