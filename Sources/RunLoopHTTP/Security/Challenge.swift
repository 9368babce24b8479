// SPDX-License-Identifier: Apache-2.0

/// What a server asks for in `WWW-Authenticate`.
struct Challenge: Hashable, Sendable {
  var scheme: String
  var parameters: [String: String] = [:]

  /// Reads all challenges of a field, which a comma separates as it does their parameters (RFC 9110, section 11.6.1).
  static func read(_ text: String) -> [Challenge] {
    var challenges: [Challenge] = []
    var rest = Array(text.utf8)[...]
    func skipSpaces() {
      while let first = rest.first, first == 32 || first == 9 || first == 44 { rest = rest.dropFirst() }
    }
    func token() -> String {
      let part = rest.prefix { HTTP.Headers.isToken(CollectionOfOne($0)) }
      rest = rest.dropFirst(part.count)
      return String(decoding: part, as: UTF8.self)
    }
    while true {
      skipSpaces()
      guard !rest.isEmpty else { return challenges }
      let word = token()
      guard !word.isEmpty else { return challenges }
      var ahead = rest.drop { $0 == 32 || $0 == 9 }
      guard ahead.first == 61, !challenges.isEmpty else {
        challenges.append(Challenge(scheme: word.lowercased()))
        continue
      }
      ahead = ahead.dropFirst().drop { $0 == 32 || $0 == 9 }
      rest = ahead
      var value: [UInt8] = []
      if rest.first == 34 {
        rest = rest.dropFirst()
        while let byte = rest.popFirst(), byte != 34 {
          if byte == 92, let next = rest.popFirst() { value.append(next) } else { value.append(byte) }
        }
      } else {
        value = Array(rest.prefix { $0 != 44 && $0 != 32 && $0 != 9 })
        rest = rest.dropFirst(value.count)
      }
      let name = word.lowercased()
      if challenges[challenges.count - 1].parameters[name] == nil {
        challenges[challenges.count - 1].parameters[name] = String(decoding: value, as: UTF8.self)
      }
    }
  }

  /// The safest of those that can be answered.
  static func best(of headers: HTTP.Headers, _ name: String = "WWW-Authenticate") -> Challenge? {
    let all = headers.values(of: name).flatMap(read)
    return all.max { $0.rank < $1.rank }.flatMap { $0.rank > 0 ? $0 : nil }
  }

  private var rank: Int {
    switch scheme {
    case "basic": return 1
    case "digest":
      guard parameters["nonce"] != nil, let algorithm else { return 0 }
      if let qop = parameters["qop"], !Self.options(qop).contains("auth") { return 0 }
      return algorithm.isSHA ? 3 : 2
    default: return 0
    }
  }

  private static func options(_ text: String) -> [String] {
    text.split(separator: ",").map { trimmed($0).lowercased() }
  }

  private var algorithm: (isSHA: Bool, isSession: Bool)? {
    switch (parameters["algorithm"] ?? "MD5").uppercased() {
    case "MD5": (false, false)
    case "MD5-SESS": (false, true)
    case "SHA-256": (true, false)
    case "SHA-256-SESS": (true, true)
    default: nil
    }
  }

  /// Whether the server says that only its number was too old.
  var isStale: Bool { parameters["stale"]?.lowercased() == "true" }

  /// The value of `Authorization`.
  ///
  /// - Parameter use: Which use of the server's number it is, from one on: a server may reject one that it has seen.
  func answer(
    _ credential: HTTP.Credential, method: HTTP.Method, target: String, clientNonce: String, use: UInt32 = 1
  ) -> String {
    guard scheme == "digest", let algorithm, let nonce = parameters["nonce"] else {
      return "Basic " + base64(Array("\(credential.user):\(credential.password)".utf8))
    }
    func hash(_ text: String) -> String {
      let bytes = Array(text.utf8)
      return hexadecimal(algorithm.isSHA ? SHA256.digest(bytes) : MD5.digest(bytes))
    }
    func quoted(_ text: String) -> String {
      var result = "\""
      for character in text.unicodeScalars {
        if character == "\"" || character == "\\" { result += "\\" }
        result.unicodeScalars.append(character)
      }
      return result + "\""
    }
    let realm = parameters["realm"] ?? ""
    var secret = hash("\(credential.user):\(realm):\(credential.password)")
    if algorithm.isSession { secret = hash("\(secret):\(nonce):\(clientNonce)") }
    let request = hash("\(method):\(target)")
    var fields = [
      "username=" + quoted(credential.user), "realm=" + quoted(realm), "nonce=" + quoted(nonce),
      "uri=" + quoted(target),
    ]
    if parameters["qop"] != nil {
      let digits = String(use, radix: 16)
      let count = String(repeating: "0", count: 8 - digits.count) + digits
      fields.append("response=" + quoted(hash("\(secret):\(nonce):\(count):\(clientNonce):auth:\(request)")))
      fields += ["qop=auth", "nc=\(count)", "cnonce=" + quoted(clientNonce)]
    } else {
      fields.append("response=" + quoted(hash("\(secret):\(nonce):\(request)")))
      if algorithm.isSession { fields.append("cnonce=" + quoted(clientNonce)) }
    }
    if let name = parameters["algorithm"] { fields.append("algorithm=\(name)") }
    if let opaque = parameters["opaque"] { fields.append("opaque=" + quoted(opaque)) }
    return "Digest " + fields.joined(separator: ", ")
  }
}
