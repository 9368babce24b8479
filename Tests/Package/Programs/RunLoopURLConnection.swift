// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopURLConnection

/// Prints how the connection ended: nothing listens on port 1.
final class Delegate: NSURLConnectionDataDelegate {
  func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
    print("RunLoopURLConnection: \((error as? URLError)?.code == .cannotConnectToHost)")
    RunLoop.current.stop()
  }
}

/// A connection on the current loop, with one import for both Foundation's request and our loop.
@main enum Program {
  static func main() {
    guard let url = URL(string: "http://127.0.0.1:1/") else { exit(1) }
    _ = NSURLConnection(request: URLRequest(url: url), delegate: Delegate())
    exit(RunLoop.current.run(mode: .default, for: .seconds(60)) == .stopped ? 0 : 1)
  }
}
