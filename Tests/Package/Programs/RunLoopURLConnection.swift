// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopURLConnection

/// Says how its connection has ended: at port 1 nobody answers.
final class Delegate: NSURLConnectionDataDelegate {
  func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
    print("RunLoopURLConnection: \((error as? URLError)?.code == .cannotConnectToHost)")
    RunLoop.current.stop()
  }
}

/// A connection on the current loop, with Foundation's request and our loop by one import.
@main enum Program {
  static func main() {
    guard let url = URL(string: "http://127.0.0.1:1/") else { exit(1) }
    _ = NSURLConnection(request: URLRequest(url: url), delegate: Delegate())
    exit(RunLoop.current.run(mode: .default, for: .seconds(60)) == .stopped ? 0 : 1)
  }
}
