// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopSystemEvents

@Suite struct ForeignFilePathTests {
  @Test("a watched path with a zero byte is an error, and is not truncated")
  func zeroBytes() throws {
    let scratch = Scratch()
    scratch.make("file")
    let path = scratch("file")
    let cut = path + "\0.pem"
    #expect(throws: (any Error).self) {
      _ = try FileChangeSource(path: FileChangeSource.Path(cut)) { _, _ in }
    }
    #expect(throws: (any Error).self) {
      _ = try FileChangeSource(path: FileChangeSource.Path(bytes: Array(path.utf8) + [0, 120])) { _, _ in }
    }
  }
}
