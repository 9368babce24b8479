// SPDX-License-Identifier: Apache-2.0

public import FoundationNetworking
public import RunLoopHTTP

import Foundation

extension HTTP.Response {
  /// The response as a Foundation type; nil if Foundation cannot parse its URL.
  ///
  /// Headers with the same name are joined with commas. If the body was decoded, the announced length does not match
  /// the delivered data and is removed, so that `expectedContentLength` is -1.
  public var urlResponse: HTTPURLResponse? {
    guard let address = URL(string: url) else { return nil }
    var fields: [String: String] = [:]
    var names: [String: String] = [:]
    for field in headers.fields {
      let name = names[field.name.lowercased(), default: field.name]
      names[field.name.lowercased()] = name
      fields[name] = fields[name].map { "\($0), \(field.value)" } ?? field.value
    }
    if !decodedFrom.isEmpty, let name = names["content-length"] { fields[name] = nil }
    return HTTPURLResponse(url: address, statusCode: status.code, httpVersion: "HTTP/\(version)", headerFields: fields)
  }
}
