// SPDX-License-Identifier: Apache-2.0

public import FoundationNetworking
public import RunLoopHTTP

import Foundation

extension HTTP.Response {
  /// The response as Foundation has it; nil if Foundation cannot read its URL.
  ///
  /// Fields of one name are joined by commas. If the body was decoded, the length that the server announces is not that
  /// of what arrives, and is left out, so that `expectedContentLength` is -1.
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
