// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A multipart form to which parts can be added.
public protocol AFMultipartFormData: AnyObject {
  /// Adds the value of a field.
  func appendPart(withForm data: Data, name: String)
  /// Adds a file from data.
  func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String)
  /// Adds a file that is read when the form is sent, with its own name and type.
  ///
  /// - Throws: A Foundation error if the file does not exist or is not a regular file.
  func appendPart(withFileURL url: URL, name: String) throws
  /// Adds a file that is read when the form is sent.
  ///
  /// - Throws: The errors of ``appendPart(withFileURL:name:)``.
  func appendPart(withFileURL url: URL, name: String, fileName: String, mimeType: String) throws
  /// Adds a file from a stream that is read when the form is sent.
  ///
  /// A form with a stream can be sent only once: a redirect or a challenge that requires sending it again fails the
  /// request.
  ///
  /// - Parameters:
  ///   - inputStream: An unopened stream; nil for an empty part.
  ///   - name: The name of the field.
  ///   - fileName: The name of the file.
  ///   - length: The number of bytes in the stream. If it has fewer, the request fails. If the length is negative or
  ///     makes the form longer than `Int.max`, opening the body fails.
  ///   - mimeType: The type of the file.
  func appendPart(
    withInputStream inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String)
  /// Limits the number of bytes sent at once, with a delay after each packet.
  ///
  /// - Parameters:
  ///   - numberOfBytes: The maximum number of bytes to read at once, at least one.
  ///   - delay: The time in seconds that the thread reading the form then waits.
  func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval)
  /// Adds a part with custom headers.
  func appendPart(withHeaders headers: [String: String]?, body: Data)
}

final class MultipartForm: AFMultipartFormData {
  /// The delimiter between the parts.
  let boundary: String
  private let encoding: String.Encoding
  private var sources: [AFMultipartBodyStream.Source] = []
  private var throttle = AFMultipartBodyStream.Throttle()

  init(_ encoding: String.Encoding) {
    self.encoding = encoding
    let parts = (0..<2).map { _ in
      let digits = String(UInt32.random(in: 0 ... .max), radix: 16, uppercase: true)
      return String(repeating: "0", count: 8 - digits.count) + digits
    }
    boundary = "Boundary+" + parts.joined()
  }

  func stream() -> AFMultipartBodyStream {
    AFMultipartBodyStream(
      sources + [.data(Data("\(sources.isEmpty ? "" : "\r\n")--\(boundary)--\r\n".utf8))], throttle)
  }

  func appendPart(withForm data: Data, name: String) {
    appendPart(withHeaders: ["Content-Disposition": "form-data; name=\"\(quoted(name))\""], body: data)
  }

  func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String) {
    begin(fileHeaders(name, fileName, mimeType))
    sources.append(.data(data))
  }

  func appendPart(withFileURL url: URL, name: String) throws {
    try appendPart(
      withFileURL: url, name: name, fileName: url.lastPathComponent, mimeType: Self.type(of: url.pathExtension))
  }

  func appendPart(withFileURL url: URL, name: String, fileName: String, mimeType: String) throws {
    let values = try FileManager.default.attributesOfItem(atPath: url.path)
    guard values[.type] as? FileAttributeType == .typeRegular, let length = values[.size] as? NSNumber else {
      throw CocoaError(.fileReadUnknown, userInfo: [NSFilePathErrorKey: url.path])
    }
    begin(fileHeaders(name, fileName, mimeType))
    sources.append(.file(url, length: length.intValue))
  }

  func appendPart(
    withInputStream inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String
  ) {
    begin(fileHeaders(name, fileName, mimeType))
    guard inputStream != nil && length > 0 || length < 0 else { return }
    // A negative length is reported by the body.
    sources.append(.stream(StreamOnce(inputStream ?? InputStream(data: Data())), length: Int(clamping: length)))
  }

  func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval) {
    throttle.packetSize = Int(clamping: max(numberOfBytes, 1))
    throttle.delay = delay.isFinite ? min(max(delay, 0), 3600) : 0
  }

  func appendPart(withHeaders headers: [String: String]?, body: Data) {
    begin((headers ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    sources.append(.data(body))
  }

  private func fileHeaders(_ name: String, _ fileName: String, _ mimeType: String) -> [(String, String)] {
    [
      ("Content-Disposition", "form-data; name=\"\(quoted(name))\"; filename=\"\(quoted(fileName))\""),
      ("Content-Type", oneLine(mimeType)),
    ]
  }

  private func begin(_ headers: [(String, String)]) {
    var text = "\(sources.isEmpty ? "" : "\r\n")--\(boundary)\r\n"
    for (name, value) in headers { text += "\(oneLine(name)): \(oneLine(value))\r\n" }
    sources.append(.data((text + "\r\n").data(using: encoding) ?? Data((text + "\r\n").utf8)))
  }

  /// Escapes a name for a quoted string, so that it cannot end the string or the line.
  private func quoted(_ text: String) -> String {
    text.replacingOccurrences(of: "\"", with: "%22").replacingOccurrences(of: "\r", with: "%0D")
      .replacingOccurrences(of: "\n", with: "%0A")
  }

  private func oneLine(_ text: String) -> String {
    String(text.unicodeScalars.map { $0.value < 32 ? " " : Character($0) })
  }

  /// Returns the usual type of a file with an extension.
  private static func type(of pathExtension: String) -> String {
    switch pathExtension.lowercased() {
    case "txt", "log": "text/plain"
    case "html", "htm": "text/html"
    case "json": "application/json"
    case "xml": "application/xml"
    case "pdf": "application/pdf"
    case "zip": "application/zip"
    case "gz": "application/gzip"
    case "png": "image/png"
    case "jpg", "jpeg": "image/jpeg"
    case "gif": "image/gif"
    case "svg": "image/svg+xml"
    default: "application/octet-stream"
    }
  }
}
