// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopDisplay
import RunLoopSystemEvents
import RunLoopTransactions
import Synchronization

/// The application: a file, its visible lines, and the actions of keys.
@MainActor
final class LogViewer {
  /// The number of bytes indexed before the screen is updated.
  private nonisolated static let share = 16 << 20

  private let path: String
  private let window: LogWindow
  private let application: Application
  /// The file shown, which workers read.
  private let shown: Shown
  /// Workers for reading large parts of the file; lines are drawn by others.
  private let readers = WorkerPool(name: "log reader", threads: 2)
  private var changes: FileChangeSource?
  private var finding: AsyncTransaction?
  private var searching: AsyncTransaction?
  private var needsMore = false
  private var isFollowing: Bool
  private var text: String?
  private var message = ""

  /// The file and the first visible column, for the workers that draw.
  private final class Shown: Sendable {
    let state: Mutex<(file: LogFile, column: Int)>
    init(_ file: LogFile) { state = Mutex((file, 0)) }
    var file: LogFile { state.withLock { $0.file } }
  }

  init(path: String, follows: Bool) throws {
    self.path = path
    isFollowing = follows
    let shown = Shown(try LogFile(path: path))
    self.shown = shown
    let list = NodeListView { line in
      let (file, column) = shown.state.withLock { $0 }
      return LineContent(file: file, line: line, column: column)
    }
    window = LogWindow(list: list)
    application = Application(device: Terminal(), window: window)
    list.selectedRow = nil
    list.selectionDidChange = { [unowned self] _ in showStatus() }
    window.whenKey = { [unowned self] in press($0) }
    window.whenSearching = { [unowned self] in search($0, forward: true) }
  }

  func run() throws {
    watch()
    findLines()
    showStatus()
    try application.run()
    finding?.cancel()
    searching?.cancel()
  }

  /// Watches the file's directory for changes, as the file itself may be replaced.
  private func watch() {
    let directory = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let source = try? FileChangeSource(
      path: .init(directory), handler: MainActor.handler { [weak self] _, _ in self?.fileHasChanged() })
    guard let source else {
      message = "changes are not noticed"
      return
    }
    do {
      try RunLoop.main.add(source, forMode: .common)
      changes = source
    } catch {
      message = "changes are not noticed: \(error)"
    }
  }

  private func fileHasChanged() {
    if let identity = LogFile.identity(of: path), identity != shown.file.identity || shown.file.isTruncated,
      let file = try? LogFile(path: path)
    {
      // The file was replaced or rewritten.
      finding?.cancel()
      finding = nil
      shown.state.withLock { $0.file = file }
      message = "begun anew"
      window.list.rowCount = 0
      window.list.reload()
    }
    findLines()
  }

  /// Starts a worker that indexes further lines.
  private func findLines() {
    needsMore = finding != nil
    guard finding == nil else { return }
    let file = shown.file
    let transaction = AsyncTransaction(group: .main, workers: readers)
    finding = transaction
    transaction.add { cancellation in
      file.findLines(upTo: Self.share, cancellation)
    } completion: { @MainActor [weak self] result in
      guard let self, case .success(let isAtEnd) = result, self.finding === transaction else { return }
      self.finding = nil
      self.linesWereFound()
      if !isAtEnd || self.needsMore { self.findLines() }
    }
    transaction.commit()
  }

  private func linesWereFound() {
    let list = window.list
    let last = list.rowCount - 1
    list.rowCount = shown.file.lineCount
    // The last line may have become longer.
    if list.visibleRows.contains(last) { list.reload() }
    if isFollowing, list.rowCount > 0 { list.selectedRow = list.rowCount - 1 }
    if isFollowing || list.selectedRow == nil, list.rowCount > 0 {
      list.scrollToRow(isFollowing ? list.rowCount - 1 : 0)
    }
    showStatus()
  }

  private func showStatus() {
    let list = window.list
    let (read, total) = shown.file.progress
    var parts = [path, "lines \(list.rowCount)"]
    if read < total { parts.append("reading \(read / max(1, total / 100)) %") }
    if let row = list.selectedRow { parts.append("line \(row + 1)") }
    if isFollowing { parts.append("follow") }
    if !message.isEmpty { parts.append(message) }
    window.status.text = parts.joined(separator: "  ")
  }

  private func press(_ key: KeyEvent) -> Bool {
    guard key.modifiers.isEmpty || key.modifiers == .shift else { return false }
    switch key.key {
    case .character("q"): application.terminate()
    case .character("/"): window.ask()
    case .character("n"): search(text, forward: true)
    case .character("N"): search(text, forward: false)
    case .character("g"): select(0)
    case .character("G"): select(window.list.rowCount - 1)
    case .character("f"): follow()
    case .left: scroll(by: -8)
    case .right: scroll(by: 8)
    case .escape:
      searching?.cancel()
      message = ""
      showStatus()
    default: return false
    }
    return true
  }

  private func follow() {
    isFollowing.toggle()
    if isFollowing { select(window.list.rowCount - 1) }
    showStatus()
  }

  private func select(_ row: Int) {
    guard row >= 0, row < window.list.rowCount else { return }
    window.list.selectedRow = row
    window.list.scrollToRow(row)
  }

  private func scroll(by columns: Int) {
    shown.state.withLock { $0.column = min(max(0, $0.column + columns), LogFile.longestLine) }
    window.list.reload()
  }

  /// Starts a worker that searches for a text from the selected line on.
  private func search(_ text: String?, forward: Bool) {
    guard let text else { return showStatus() }
    self.text = text
    searching?.cancel()
    message = "searching \(text)"
    showStatus()
    let file = shown.file
    let line = window.list.selectedRow ?? (forward ? -1 : 0)
    let transaction = AsyncTransaction(group: .main, workers: readers)
    searching = transaction
    transaction.add { cancellation in
      file.find(text, from: line, forward: forward, cancellation)
    } completion: { @MainActor [weak self] result in
      guard let self, self.searching === transaction else { return }
      self.searching = nil
      switch result {
      case .success(let line?) where self.shown.file === file:
        self.message = "found \(text)"
        self.isFollowing = false
        self.select(line)
      case .success: self.message = "not found: \(text)"
      case .failure: self.message = ""
      }
      self.showStatus()
    }
    transaction.commit()
  }
}
