// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The addresses that a client caches.
@Suite struct NameCacheTests {
  @Test("unreachable addresses are looked up again by the next request")
  func forgetting() async throws {
    let server = try LyingServer { $0.answer("ok") }
    let request = HTTP.Request(server.url(host: "localhost"))
    let address = try WebAddress(request.url)
    let elsewhere = try SocketAddress(host: "127.0.0.2", port: address.port)
    try await withClient { client in
      let core = client.core
      core.post { core.names.note(address.host, address.port, [elsewhere], now: core.now) }
      #expect(await end(client, request) == "cannotConnect")
      #expect(await end(client, request) == "200 ok")
    }
  }
}
