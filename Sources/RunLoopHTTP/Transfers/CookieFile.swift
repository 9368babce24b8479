// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC

/// A cookie file in the format of curl, wget and Netscape: one line per cookie, with seven tab-separated fields.
///
/// A line for a cookie with a non-default port starts with a comment such as `#Port_8080_`, so that those programs do
/// not send it to another server.
enum CookieFile {
  private static let limit = 16 * 1024 * 1024
  private static let (portMark, scriptMark) = ("#Port_", "#HttpOnly_")

  static func text(of cookies: [HTTP.Cookie]) -> String {
    var text = "# Netscape HTTP Cookie File\n"
    for cookie in cookies {
      if let port = cookie.port { text += "\(portMark)\(port)_" }
      let fields = [
        cookie.isHostOnly ? cookie.domain : "." + cookie.domain, cookie.isHostOnly ? "FALSE" : "TRUE", cookie.path,
        cookie.isSecure ? "TRUE" : "FALSE", "\(cookie.expires ?? 0)", cookie.name, cookie.value,
      ]
      text += fields.joined(separator: "\t") + "\n"
    }
    return text
  }

  /// Parses a file's text, or throws an error for the first line that is not a cookie.
  static func cookies(in text: String) throws(HTTP.Error) -> [HTTP.Cookie] {
    var cookies: [HTTP.Cookie] = []
    // Splits bytes, because Swift treats "\r\n" as a single character.
    let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, bytes) in lines.enumerated() {
      var line = Substring(bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes)
      var port: Int?
      if line.hasPrefix(portMark), let end = line.dropFirst(portMark.count).firstIndex(of: "_") {
        port = Int(line[..<end].dropFirst(portMark.count)) ?? 0
        line = line[line.index(after: end)...]
      }
      if line.hasPrefix(scriptMark) { line = line.dropFirst(scriptMark.count) }
      if line.isEmpty || line.hasPrefix("#") { continue }
      do throws(HTTP.Error) {
        cookies.append(try cookie(line, port))
      } catch {
        throw HTTP.Error(.fileFailed, "line \(index + 1): \(error.detail)")
      }
    }
    return cookies
  }

  private static func cookie(_ line: Substring, _ port: Int?) throws(HTTP.Error) -> HTTP.Cookie {
    var fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    // The tab before an empty value may have been lost.
    if fields.count == 6 { fields.append("") }
    guard fields.count == 7, let expires = Int64(fields[4]) else {
      throw HTTP.Error(.fileFailed, "it is not a cookie of seven fields")
    }
    let domain = fields[0].hasPrefix(".") ? String(fields[0].dropFirst()) : fields[0]
    return try HTTP.Cookie(
      name: fields[5], value: fields[6], domain: domain, isHostOnly: fields[1].uppercased() != "TRUE", port: port,
      path: fields[2], isSecure: fields[3].uppercased() == "TRUE", expires: expires == 0 ? nil : expires)
  }

  static func write(_ cookies: [HTTP.Cookie], to path: String) throws(HTTP.Error) {
    do throws(SystemError) {
      let file = try NewFile(path: path)
      let bytes = Array(text(of: cookies).utf8)
      var written = 0
      while written < bytes.count {
        let count = try SystemCall.fileWrite.makeUninterrupted {
          let count = bytes.withUnsafeBytes {
            RunLoopLibC.write(file.descriptor.number, $0.baseAddress?.advanced(by: written), bytes.count - written)
          }
          return count < 0 ? -errno : Int32(count)
        }
        written += Int(count)
      }
      try file.finish()
    } catch {
      throw HTTP.Error(
        .fileFailed, "the cookies cannot be written to \(path.debugDescription): \(systemText(error.number))")
    }
  }

  static func read(_ path: String) throws(HTTP.Error) -> [HTTP.Cookie] {
    let bytes: [UInt8]
    do throws(HTTP.Error) {
      let source = try FileSource(path, "the file of cookies")
      guard source.length ?? .max <= limit else {
        throw HTTP.Error(.fileFailed, "the cookies in \(path) are more than \(limit) bytes")
      }
      bytes = try source.readWhole()
    } catch {
      throw HTTP.Error(.fileFailed, error.detail)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw HTTP.Error(.fileFailed, "\(path) is not UTF-8")
    }
    return try cookies(in: text)
  }
}
