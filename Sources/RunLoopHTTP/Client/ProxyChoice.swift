// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

struct ProxyChoice: Sendable {
  private enum Choice: Sendable {
    case none
    case all(String)
    case environment(http: Variable?, https: Variable?, none: [ProxyException])
  }

  private struct Variable: Sendable {
    let name: String
    let value: String
  }

  private let choice: Choice

  init(_ proxy: HTTP.Proxy, environment: (String) -> String? = Environment.value) {
    switch proxy {
    case .none: choice = .none
    case .url(let text): choice = .all(text)
    case .environment:
      func first(_ names: String...) -> Variable? {
        names.compactMap { name in environment(name).map { Variable(name: name, value: $0) } }.first {
          !$0.value.isEmpty
        }
      }
      let any = first("all_proxy", "ALL_PROXY")
      // HTTP_PROXY is ignored: in a CGI program, a client can set it by sending a Proxy header.
      choice = .environment(
        http: first("http_proxy") ?? any, https: first("https_proxy", "HTTPS_PROXY") ?? any,
        none: (first("no_proxy", "NO_PROXY")?.value ?? "").split(whereSeparator: { $0 == "," || $0 == " " }).map {
          ProxyException($0.lowercased())
        })
    }
  }

  /// The proxy to use for a URL, or nil for a direct connection.
  func proxy(for address: WebAddress) throws(HTTP.Error) -> ProxyAddress? {
    switch choice {
    case .none: return nil
    case .all(let text): return try ProxyAddress(text)
    case .environment(let http, let https, let none):
      if none.contains(where: { $0.covers(address) }) { return nil }
      guard let variable = address.isTLS ? https : http else { return nil }
      return try ProxyAddress(variable.value, variable: variable.name)
    }
  }
}
