// SPDX-License-Identifier: Apache-2.0

import RunLoopHTTPTesting

/// A test server and its URL.
@main enum Program {
  static func main() throws {
    let server = try HTTPTestServer(script: ["/": [.init("hello")]])
    defer { server.stop() }
    print("RunLoopHTTPTesting: \(server.url().hasPrefix("http://127.0.0.1:"))")
  }
}
