// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A pseudo-terminal, on which an experiment types and reads the application's output; can be used from any thread.
final class PseudoTerminal: Sendable {
  /// The application's end of the terminal.
  let application: Int32
  private let user: Int32

  /// Opens a terminal with a size in cells.
  init(width: UInt16, height: UInt16) {
    var ends: [Int32] = [-1, -1]
    let answer = ends.withUnsafeMutableBufferPointer { openpty(&$0[0], &$0[1], nil, nil, nil) }
    precondition(answer == 0, "no pseudo-terminal could be opened (error \(errno))")
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    (user, application) = (ends[0], ends[1])
    _ = fcntl(user, F_SETFL, fcntl(user, F_GETFL) | O_NONBLOCK)
    resize(width: width, height: height)
  }

  deinit {
    close(application)
    close(user)
  }

  /// Resizes the terminal, as a window system does.
  func resize(width: UInt16, height: UInt16) {
    var size = winsize(ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(user, UInt(TIOCSWINSZ), &size)
  }

  /// Types bytes, and waits until the kernel has delivered them to the application's end.
  func type(_ bytes: String) {
    var bytes = bytes
    let count = bytes.withUTF8 { Glibc.write(user, $0.baseAddress, $0.count) }
    precondition(count == bytes.utf8.count, "the pseudo-terminal takes no input (error \(errno))")
    var arrival = pollfd(fd: application, events: Int16(POLLIN), revents: 0)
    while poll(&arrival, 1, -1) < 0, errno == EINTR {}
  }

  /// Reads the output, to make room for more, and returns the number of bytes.
  @discardableResult
  func read() -> Int {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var total = 0
    while true {
      let count = Glibc.read(user, &bytes, bytes.count)
      guard count > 0 else { return total }
      total += count
    }
  }
}
