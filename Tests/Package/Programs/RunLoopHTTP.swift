// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopHTTP

/// A request that the program handles itself, so that it needs neither a server nor libcurl.
@main enum Program {
  static func main() {
    var configuration = HTTP.Configuration()
    configuration.interceptors = [
      .init { request in .respond(HTTP.Response(status: 200), HTTP.Body("answered \(request.url)")) }
    ]
    let client = HTTP.Client(configuration, on: .current)
    let operation = client.operation(HTTP.Request("http://example.org/"))
    operation.onCompletion { result in
      guard case .success((let body, _)) = result else { exit(1) }
      print("RunLoopHTTP: \(body.text ?? "")")
      RunLoop.current.stop()
    }
    operation.start()
    exit(RunLoop.current.run(mode: .default, for: .seconds(60)) == .stopped ? 0 : 1)
  }
}
