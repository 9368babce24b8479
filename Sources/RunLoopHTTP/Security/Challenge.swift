// SPDX-License-Identifier: Apache-2.0

/// An authentication challenge in a `WWW-Authenticate` header.
struct Challenge: Hashable, Sendable {
  var scheme: String
  var parameters: [String: String] = [:]

  /// Parses all challenges of a header, where commas separate both challenges and parameters (RFC 9110, section
  /// 11.6.1).
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
      let ahead = rest.drop { $0 == 32 || $0 == 9 }
      guard ahead.first == 61, !challenges.isEmpty else {
        challenges.append(Challenge(scheme: word.lowercased()))
        // Schemes that are not supported may have a single value in base64 in place of parameters.
        let after = ahead.drop { HTTP.Headers.isToken(CollectionOfOne($0)) || $0 == 47 }.drop { $0 == 61 || $0 == 32 }
        if after.first ?? 44 == 44 { rest = after }
        continue
      }
      rest = ahead.dropFirst().drop { $0 == 32 || $0 == 9 }
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

  /// Returns the most secure of the supported challenges.
  ///
  /// - Parameter body: The body of the request, which some servers require a digest of.
  static func best(
    of headers: HTTP.Headers, _ name: String = "WWW-Authenticate", body: HTTP.Content? = nil
  ) -> Challenge? {
    best(of: headers, name) { HTTP.Content.canBeDigested(body) }
  }

  /// Returns the most secure of the supported challenges, or the first of equally secure ones.
  ///
  /// - Parameter canBeDigested: Whether a digest of the request's body can be computed. Called at most once, and only
  ///   for a challenge that requires it, because it may read a file.
  static func best(of headers: HTTP.Headers, _ name: String, canBeDigested: () -> Bool) -> Challenge? {
    var known: Bool?
    func isDigestible() -> Bool {
      if let known { return known }
      let found = canBeDigested()
      known = found
      return found
    }
    var best: (challenge: Challenge, rank: Int)?
    for challenge in headers.values(of: name).flatMap(read) {
      let rank = challenge.rank(isDigestible)
      if rank > best?.rank ?? 0 { best = (challenge, rank) }
    }
    return best?.challenge
  }

  /// The relative security of the challenge; 0 if it is not supported.
  private func rank(_ canBeDigested: () -> Bool) -> Int {
    switch scheme {
    case "basic": return 1
    case "digest":
      guard parameters["nonce"] != nil, let algorithm else { return 0 }
      switch protection {
      case .none?, .request?: break
      case .body?: guard canBeDigested() else { return 0 }
      case nil: return 0
      }
      return algorithm.rank
    default: return 0
    }
  }

  /// The parts of a request that the digest protects.
  private enum Protection { case none, request, body }

  /// The weakest protection that the server accepts; nil if it is unknown.
  private var protection: Protection? {
    guard let qop = parameters["qop"] else { return Protection.none }
    let options = qop.split(separator: ",").map { trimmed($0).lowercased() }
    return options.contains("auth") ? .request : options.contains("auth-int") ? .body : nil
  }

  /// A digest algorithm.
  private struct Algorithm {
    let rank: Int
    let isSession: Bool
    let digest: ([UInt8]) -> [UInt8]
  }

  private var algorithm: Algorithm? {
    var name = (parameters["algorithm"] ?? "MD5").uppercased()
    let isSession = name.hasSuffix("-SESS")
    if isSession { name.removeLast(5) }
    return switch name {
    case "MD5": Algorithm(rank: 2, isSession: isSession, digest: MD5.digest)
    case "SHA-256": Algorithm(rank: 3, isSession: isSession, digest: SHA256.digest)
    case "SHA-512-256": Algorithm(rank: 4, isSession: isSession, digest: SHA512.digest256)
    default: nil
    }
  }

  /// Whether the server rejected the request only because the nonce was stale.
  var isStale: Bool { parameters["stale"]?.lowercased() == "true" }

  /// Returns the value of the `Authorization` header.
  ///
  /// - Parameters:
  ///   - use: The nonce count, starting at 1. A server may reject a count that it has seen.
  ///   - body: The body of the request.
  func answer(
    _ credential: HTTP.Credential, method: HTTP.Method, target: String, clientNonce: String, use: UInt32 = 1,
    body: HTTP.Content? = nil
  ) -> String {
    guard scheme == "digest", let algorithm, let nonce = parameters["nonce"] else {
      return "Basic " + base64(Array("\(credential.user):\(credential.password)".utf8))
    }
    func hash(_ text: String) -> String { hexadecimal(algorithm.digest(Array(text.utf8))) }
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
    let ofBody = protection == .body ? ":" + hexadecimal(algorithm.digest(HTTP.Content.wholeBytes(body) ?? [])) : ""
    let request = hash("\(method):\(target)\(ofBody)")
    var fields = [
      "username=" + quoted(credential.user), "realm=" + quoted(realm), "nonce=" + quoted(nonce),
      "uri=" + quoted(target),
    ]
    if parameters["qop"] != nil {
      let digits = String(use, radix: 16)
      let count = String(repeating: "0", count: 8 - digits.count) + digits
      let qop = protection == .body ? "auth-int" : "auth"
      fields.append("response=" + quoted(hash("\(secret):\(nonce):\(count):\(clientNonce):\(qop):\(request)")))
      fields += ["qop=\(qop)", "nc=\(count)", "cnonce=" + quoted(clientNonce)]
    } else {
      fields.append("response=" + quoted(hash("\(secret):\(nonce):\(request)")))
      if algorithm.isSession { fields.append("cnonce=" + quoted(clientNonce)) }
    }
    if let name = parameters["algorithm"] { fields.append("algorithm=\(name)") }
    if let opaque = parameters["opaque"] { fields.append("opaque=" + quoted(opaque)) }
    return "Digest " + fields.joined(separator: ", ")
  }
}
