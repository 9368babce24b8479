// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// The views, and the handling of keys that none of them handles.
@MainActor
final class CatalogWindow: Window {
  let commits = Label("commits 0")
  let ticks = Label("ticks 0")
  let mode = Label("mode default")
  private let focus = Label("focus button")
  private let last = Label("last none")
  private let layoutState = Label("layout none")
  let completions = Label("completions 0 cancelled 0")
  let beats = Label("beats 0 missed 0")
  let worst = Label("worst 0 ms")
  let storm = Label("storm 0 commits")
  private let pressed = Label("pressed 0")
  private let brokenOff = Label("broken off 0")
  private let tap = Label("tap 0")
  private let pan = Label("pan possible 0,0")
  private let pasted = Label("pasted 0")

  private let button = CatalogButton("[ Press ]", frame: Rect(x: 0, y: 4, width: 9, height: 1))
  private let panView = PanView(frame: Rect(x: 20, y: 4, width: 10, height: 1))
  private let field = TextField(prompt: "field: ", frame: Rect(x: 0, y: 6, width: 24, height: 1))
  let list: NodeListView
  private let hint = Label(
    "F1 more   F3 a busy loop   F4 drawings by workers   F5 all cancelled   q ends", style: Style(attributes: .dim))
  private let showcase = Showcase()
  /// The responder that had the focus before the showcase.
  private weak var focusBefore: Responder?

  private var pressCount = 0
  private var tapCount = 0
  private var pastedCount = 0
  /// Whether a layout was requested, by the button or by F4 or F5, and is pending.
  ///
  /// The text is then "pending"; but layout precedes drawing in each commit, so no frame ever shows it.
  private var isLayoutPending = false
  /// Called with the number of a function key.
  var whenFunctionKey: ((Int) -> Void)?

  /// The first row of the list.
  private static let listRow = 8
  private static let styles: [Style] = [.plain, Style(foreground: .palette(12)), Style(foreground: .palette(14))]

  init() {
    list = NodeListView { index in
      let digits = String(index)
      let zeros = String(repeating: "0", count: 7 - digits.count)
      return TextContent("row \(zeros)\(digits) of the catalog's million rows", style: Self.styles[index % 3])
    }
    super.init()
    addTexts()
    addViews()
    addGestures()
    button.becomeFirstResponder()
  }

  private func addTexts() {
    let lines: [[(Label, Int)]] = [
      [
        (Label("UI catalog", style: Style(foreground: .cyan, attributes: .bold)), 0), (commits, 14), (ticks, 30),
        (mode, 44), (focus, 60),
        (last, 76),
      ],
      [(layoutState, 0), (completions, 15), (beats, 56), (worst, 84)],
      [(storm, 0), (pressed, 18), (brokenOff, 32), (tap, 49), (pan, 60), (pasted, 85)],
    ]
    for (row, labels) in lines.enumerated() {
      for (index, (label, column)) in labels.enumerated() {
        let end = index + 1 < labels.count ? labels[index + 1].1 - 1 : 100
        label.frame = Rect(x: column, y: row, width: end - column, height: 1)
        addSubview(label)
      }
    }
  }

  private func addViews() {
    button.name = "button"
    button.style = Style(foreground: .black, background: .cyan)
    button.action = { [unowned self] in
      pressCount += 1
      pressed.text = "pressed \(pressCount)"
      askForLayout()
    }
    button.whenCancelled = { [unowned self] in brokenOff.text = "broken off \($0)" }
    panView.name = "pan"
    field.name = "field"
    list.name = "list"
    list.rowCount = 1_000_000
    list.selectedRow = 0
    addSubview(button)
    addSubview(panView)
    addSubview(field)
    addSubview(Label("|", frame: Rect(x: 24, y: 6, width: 1, height: 1)))
    addSubview(list)
    hint.lineBreakMode = .truncatingTail
    addSubview(hint)
    addSubview(showcase)
  }

  /// Toggles between the showcase and the texts and controls.
  ///
  /// - Parameter moves: Whether it has timers.
  func toggleShowcase(moves: Bool) {
    showcase.frameCount = { [weak self] in self?.application?.frameCount ?? 0 }
    if showcase.isHidden {
      focusBefore = firstResponder
      for view in subviews where view !== showcase { view.isUserInteractionEnabled = false }
      showcase.show(moves: moves)
    } else {
      showcase.hide()
      for view in subviews { view.isUserInteractionEnabled = true }
      focusBefore?.becomeFirstResponder()
    }
  }

  private func addGestures() {
    let breaking = PanGestureRecognizer { _ in }
    breaking.name = "pan"
    button.addGestureRecognizer(breaking)
    let tapping = TapGestureRecognizer { [unowned self] _ in
      tapCount += 1
      tap.text = "tap \(tapCount)"
    }
    tapping.name = "tap"
    panView.addGestureRecognizer(tapping)
    let panning = PanGestureRecognizer { [unowned self] gesture in
      pan.text = "pan \(gesture.state) \(gesture.translation.x),\(gesture.translation.y)"
    }
    panning.name = "pan"
    panView.addGestureRecognizer(panning)
  }

  /// Requests a layout, and shows when it was made.
  func askForLayout() {
    layoutState.text = "layout pending"
    isLayoutPending = true
    setNeedsLayout()
  }

  override func layoutSubviews() {
    let size = bounds.size
    list.frame = Rect(
      x: 0, y: Self.listRow, width: size.width, height: max(0, size.height - Self.listRow))
    hint.frame = Rect(x: 0, y: Self.listRow - 1, width: min(size.width, 100), height: 1)
    showcase.frame = Rect(origin: .zero, size: size)
    guard isLayoutPending else { return }
    isLayoutPending = false
    layoutState.text = "layout done"
  }

  override func focusDidChange() {
    guard let view = firstResponder as? View, let name = view.name else { return }
    focus.text = "focus \(name)"
  }

  override func sendEvent(_ event: InputEvent) {
    switch event {
    case .key(let key): last.text = "last \(key.word)"
    case .paste(let text, _):
      pastedCount += text.count
      pasted.text = "pasted \(pastedCount)"
    case .mouse, .resize, .focus, .hangUp: break
    }
    super.sendEvent(event)
  }

  override func keyPressed(_ key: KeyEvent) {
    switch (key.key, key.modifiers) {
    case (.character("q"), []): application?.terminate()
    case (.function(let number), []): whenFunctionKey?(number)
    default: super.keyPressed(key)
    }
  }
}

/// The button, which counts the touches that were cancelled.
@MainActor
private final class CatalogButton: Button {
  var whenCancelled: ((Int) -> Void)?
  private var cancelled = 0

  override func touchesCancelled(_ touch: Touch) {
    super.touchesCancelled(touch)
    cancelled += 1
    whenCancelled?(cancelled)
  }
}

/// The view for taps and pans.
@MainActor
private final class PanView: View {
  override func draw(_ canvas: inout Canvas) {
    canvas.draw("(pan here)", at: .zero, style: Style(foreground: .black, background: .yellow))
  }
}

extension Label {
  /// Shows a text, and redraws even if it is unchanged.
  func show(_ text: String) {
    self.text = text
    setNeedsDisplay()
  }
}

extension KeyEvent {
  /// The key's name on the screen.
  fileprivate var word: String {
    let name =
      switch key {
      case .character(" "): "space"
      case .character(let character): String(character)
      case .function(let number): "F\(number)"
      default: "\(key)"
      }
    return (modifiers.contains(.control) ? "control-" : "") + (modifiers.contains(.alt) ? "alt-" : "") + name
  }
}
