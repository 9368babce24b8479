// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// The list of lines, and below it a row for the status or the search field.
@MainActor
final class LogWindow: Window {
  let list: NodeListView
  let status = Label(style: .reversed)
  let field = TextField(prompt: "/")
  /// Called for a key that neither the list nor the field handles.
  var whenKey: ((KeyEvent) -> Bool)?
  /// Called with the text to search for, or nil to cancel.
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

  /// Shows the search field.
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
