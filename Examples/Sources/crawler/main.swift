// SPDX-License-Identifier: Apache-2.0

// Follows the links of a site: each page once, four requests at a time, at most a hundred pages.
//
//     swift run --package-path Examples crawler URL
//     swift run --package-path Examples crawler --demo
//
// The demo crawls a server of its own, and exits with 0 if it has received every page, or if libcurl is missing.

import Glibc
import RunLoopCore
import RunLoopHTTP
import RunLoopSockets
import RunLoopThreads

@MainActor final class Crawler {
  private let client: HTTP.Client
  private let site: String
  private var seen: Set<String> = []
  private var waiting: [String] = []

  /// - Parameter site: The URL of the site without a path, such as `http://127.0.0.1:8000`.
  init(_ client: HTTP.Client, site: String) {
    self.client = client
    self.site = site
  }

  /// Returns the paths that were found, with the status or the error of each.
  func crawl(from path: String, limit: Int = 100) async -> [String: String] {
    var results: [String: String] = [:]
    add(path)
    await withTaskGroup(of: (String, String).self) { group in
      var running = 0
      repeat {
        while running < 4, results.count + running < limit, let path = waiting.popLast() {
          group.addTask { (path, await self.visit(path)) }
          running += 1
        }
        guard let (path, result) = await group.next() else { return }
        running -= 1
        results[path] = result
      } while running > 0 || !waiting.isEmpty
    }
    return results
  }

  private func add(_ path: String) {
    if seen.insert(path).inserted { waiting.append(path) }
  }

  private func visit(_ path: String) async -> String {
    do {
      let (body, response) = try await client.data(for: HTTP.Request(site + path))
      for link in links(in: body.text ?? "") { add(link) }
      return "\(response.status)"
    } catch {
      return "\(error)"
    }
  }

  /// The paths of the same site that a page links to.
  private func links(in page: String) -> [String] {
    page.split(separator: "href=\"").dropFirst().compactMap { part in
      let link = String(part.prefix { $0 != "\"" && $0 != "#" })
      return link.hasPrefix("/") && !link.hasPrefix("//") ? link : nil
    }
  }
}

/// A site of thirty pages, each of which links to two others.
@MainActor func serve(_ connection: Socket) async throws {
  defer { connection.invalidate() }
  try RunLoop.main.add(connection, forMode: .common)
  for try await line in connection.lines() where line.hasPrefix("GET ") {
    let path = line.split(separator: " ")[1]
    let number = Int(path.dropFirst()) ?? 0
    let page = [number * 2 + 1, number * 2 + 2].filter { $0 < 30 }.map { "<a href=\"/\($0)\">next</a>" }.joined()
    try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(page.utf8.count)\r\n\r\n\(page)")
  }
}

@MainActor func demo() async throws {
  let listener = try ListeningSocket(at: .loopback(port: 0))
  try RunLoop.main.add(listener, forMode: .common)
  let server = Task { for try await connection in listener.connections { Task { try await serve(connection) } } }
  let client = HTTP.Client(on: .main)
  let results = await Crawler(client, site: "http://\(listener.address)").crawl(from: "/0")
  client.stop()
  listener.invalidate()
  server.cancel()
  print("\(results.count) pages: \(Set(results.values).sorted())")
  let isRight = results.count == 30 && results.values.allSatisfy { $0 == "200 OK" }
  exit(isRight || results["/0"]?.hasPrefix("noLibrary") == true ? 0 : 1)
}

MainLoop.run {
  guard let url = CommandLine.arguments.dropFirst().first else {
    print("usage: crawler URL | --demo")
    exit(2)
  }
  if url == "--demo" { try await demo() }
  let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
  guard parts.count >= 2 else { exit(2) }
  let crawler = Crawler(HTTP.Client(on: .main), site: "\(parts[0])//\(parts[1])")
  for (path, result) in await crawler.crawl(from: "/" + (parts.count > 2 ? parts[2] : "")).sorted(by: <) {
    print("\(path): \(result)")
  }
}
