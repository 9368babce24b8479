// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// The list of the lines, and a row below it that says what is seen, or in which a text to search is typed.
@MainActor
final class LogWindow: Window {
  let list: NodeListView
  let status = Label(style: .reversed)
  let field = TextField(prompt: "/")
  /// Called for a key that is neither the list's nor the field's.
  var whenKey: ((KeyEvent) -> Bool)?
  /// Called with what is to be searched; nil: nothing.
  var whenSearching: ((String?) -> Void)?

  init(list: NodeListView) {
    self.list = list
    super.init()
    field.isHidden = true
    for view in [list, status, field] { addSubview(view) }
    list.becomeFirstResponder()
  }

  override func layoutSubviews() {
    let size = bounds.size
    let last = Rect(x: 0, y: max(0, size.height - 1), width: size.width, height: 1)
    list.frame = Rect(x: 0, y: 0, width: size.width, height: max(0, size.height - 1))
    status.frame = last
    field.frame = last
  }

  /// Lets a text be typed.
  func ask() {
    field.text = ""
    field.isHidden = false
    status.isHidden = true
    field.becomeFirstResponder()
  }

  private func answer(_ text: String?) {
    field.isHidden = true
    status.isHidden = false
    list.becomeFirstResponder()
    whenSearching?(text)
  }

  override func keyPressed(_ key: KeyEvent) {
    if field.isFirstResponder {
      switch key.key {
      case .enter: return answer(field.text.isEmpty ? nil : field.text)
      case .escape: return answer(nil)
      default: break
      }
    } else if whenKey?(key) ?? false {
      return
    }
    super.keyPressed(key)
  }
}
