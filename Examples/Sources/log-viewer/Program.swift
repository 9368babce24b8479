// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Shows a log file of any size.
///
///     log-viewer [--follow] FILE
///
/// Up, Down, PageUp, PageDown, Home, End and the wheel scroll; `g` and `G` select the first and the last line; Left
/// and Right scroll long lines; `/` searches, `n` and `N` repeat the search, Escape cancels it; `f` follows the
/// file's end; `q` quits.
@main
struct Program {
  @MainActor
  static func main() {
    var arguments = CommandLine.arguments.dropFirst()
    let follows = arguments.first == "--follow"
    if follows { arguments.removeFirst() }
    guard let path = arguments.first, arguments.count == 1, !path.hasPrefix("-") else {
      fail("usage: log-viewer [--follow] FILE", status: 2)
    }
    do {
      try LogViewer(path: path, follows: follows).run()
    } catch {
      fail("log-viewer: \(error)", status: 1)
    }
  }

  private static func fail(_ message: String, status: Int32) -> Never {
    var line = message + "\n"
    line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    exit(status)
  }
}
