// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments
import RunLoopLibC
import RunLoopToolKit
import Synchronization

/// Names places in this process's code.
enum UserPlaces {
  /// What is known already: to name one place takes as long as to read the whole program.
  private static let known = Mutex<[[UInt64]: String]>([:])

  /// The function of the user's that has made a call, by those who have called; "nobody" if there is none.
  static func caller(_ addresses: [CodeAddress]) -> String {
    let key = addresses.map(\.address)
    if let name = known.withLock({ $0[key] }) { return name }
    let images = (try? TargetProcess(getpid()))?.loadedImages ?? []
    let name = Symbolizer(images).caller(key)?.function ?? "nobody"
    known.withLock { $0[key] = name }
    return name
  }
}
