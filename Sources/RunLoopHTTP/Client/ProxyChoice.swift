// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Which proxy is asked for an address.
struct ProxyChoice: Sendable {
  private enum Choice: Sendable {
    case none
    case all(String)
    case environment(http: String?, https: String?, none: [ProxyException])
  }

  private let choice: Choice

  init(_ proxy: HTTP.Proxy, environment: (String) -> String? = Environment.value) {
    switch proxy {
    case .none: choice = .none
    case .url(let text): choice = .all(text)
    case .environment:
      func first(_ names: String...) -> String? { names.compactMap { environment($0) }.first { !$0.isEmpty } }
      let any = first("all_proxy", "ALL_PROXY")
      // HTTP_PROXY in capitals is what a server's client may set in a CGI program.
      choice = .environment(
        http: first("http_proxy") ?? any, https: first("https_proxy", "HTTPS_PROXY") ?? any,
        none: (first("no_proxy", "NO_PROXY") ?? "").split(whereSeparator: { $0 == "," || $0 == " " }).map {
          ProxyException($0.lowercased())
        })
    }
  }

  /// The proxy's address; nil for none.
  func proxy(for address: WebAddress) throws(HTTP.Error) -> WebAddress? {
    switch choice {
    case .none: return nil
    case .all(let text): return try Self.read(text)
    case .environment(let http, let https, let none):
      if none.contains(where: { $0.covers(address) }) { return nil }
      guard let text = address.isTLS ? https : http else { return nil }
      return try Self.read(text)
    }
  }

  private static func read(_ text: String) throws(HTTP.Error) -> WebAddress {
    let address: WebAddress
    do throws(WebAddress.Failure) {
      address = try WebAddress(text.contains("://") ? text : "http://" + text)
    } catch {
      throw HTTP.Error(.proxyFailed, "the proxy's address is not one of http or https")
    }
    guard HTTP.Credential(user: address.user ?? "", password: address.password ?? "").isSendable else {
      throw HTTP.Error(.proxyFailed, "the proxy's credential has a control character")
    }
    return address
  }
}
