// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopHTTPTesting
import RunLoopSockets
import TestSupport
import Testing

/// The test server with other programs as its clients.
@Suite(.timeLimit(.minutes(20))) struct HTTPTestServerProgramTests {
  typealias Response = HTTPTestServer.Response

  private static let python = "/usr/bin/python3"
  private static let curl = "/usr/bin/curl"

  private static func server(isSecured: Bool = false) throws -> HTTPTestServer {
    var options = HTTPTestServer.Options()
    if isSecured {
      let (certificate, key) = (TLSFiles.path("server.pem"), TLSFiles.path("server.key"))
      options.tls = TLSServerConfiguration(identity: TLSIdentity(certificateFile: certificate, keyFile: key))
      options.http2 = true
    }
    options.requestsPerConnection = 3
    return try HTTPTestServer(options: options) {
      Response("\($0.line) \($0.body.count) \($0.connection) \($0.number)")
    }
  }

  @Test(
    "Python's client keeps a connection up to its limit",
    .enabled(if: system("\(python) -c 'import http.client' 2>/dev/null") == 0))
  func pythonClient() async throws {
    let server = try Self.server()
    let script = """
      import http.client, sys
      connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
      def chunks():
          yield b"abc"
          yield b"de"
      for method, body in (("GET", None), ("POST", b"hello"), ("PUT", chunks()), ("HEAD", None)):
          connection.request(method, "/" + method.lower(), body)
          response = connection.getresponse()
          print(response.status, response.read().decode(), response.headers["Connection"])
      """
    let run = try await SpawnedProcess.run(Self.python, ["-c", script, "\(server.address.port ?? 0)"])
    #expect(run.errorText == "")
    #expect(
      run.outputText == "200 GET /get 0 0 0 None\n200 POST /post 5 0 1 None\n200 PUT /put 5 0 2 close\n200  None\n")
    #expect(server.requests.last?.connection == 1)
  }

  @Test(
    "curl loses nothing at a server that closes connections, with either protocol",
    .enabled(if: access(curl, X_OK) == 0 && TLSFiles.canBeMade), arguments: ["--http1.1", "--http2"])
  func curlClient(_ version: String) async throws {
    let server = try Self.server(isSecured: true)
    let run = try await SpawnedProcess.run(
      Self.curl,
      [
        version, "--silent", "--show-error", "--cacert", TLSFiles.path("ca.pem"), "--data", "12345", "--write-out",
        " %{http_code}\n", server.url("/[1-7]"),
      ])
    #expect(run.errorText == "")
    let expected = (0..<7).map { "POST /\($0 + 1) 5 \($0 / 3) \($0 % 3) 200\n" }.joined()
    #expect(run.outputText == expected)
    #expect(server.requests.allSatisfy { $0.isHTTP2 == (version == "--http2") })
  }
}
