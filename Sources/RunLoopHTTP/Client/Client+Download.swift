// SPDX-License-Identifier: Apache-2.0

extension HTTP.Client {
  /// Makes a request and writes the response's body to a file.
  ///
  /// The bytes are written to `NAME.part`, and a description of the complete body to `NAME.part.json`. When all bytes
  /// have arrived, the file is flushed to disk and renamed, so `NAME` is either complete or absent. If the request
  /// ends early, the next download continues from the existing bytes, provided that the server still has the same
  /// version of the body (identified by a strong entity tag or a date) and reports its length; otherwise it starts
  /// over. A response with an unsuccessful status leaves `NAME` unchanged, so check the status. The file contains the
  /// bytes as the server sent them, even if they have a content coding, unless ``HTTP/Request/decoding`` is
  /// ``HTTP/Decoding/always``.
  ///
  /// Only a partial file that belongs to the process's user and that other users cannot write is continued. In a
  /// directory that other users can write to, files they have placed at these names are neither written nor trusted.
  ///
  /// - Parameters:
  ///   - request: The request to make.
  ///   - path: The file to write. An existing file is replaced.
  ///   - resuming: Whether to continue from the bytes that an earlier download left behind.
  /// - Returns: The response's status and headers. The status is 206 if an earlier download was continued.
  /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/fileFailed`` if the file cannot be written, another download
  ///   is writing it, or the path contains a zero byte.
  public func download(
    _ request: HTTP.Request, to path: String, resuming: Bool = true
  ) async throws -> HTTP.Response {
    let file = try PartFile(path, url: PartNote.name(of: request.url), resumes: resuming)
    var request = request
    request.asksForFile()
    return try await run(request) { FileReceiver(file, $0) }
  }
}

extension HTTP.Request {
  /// Requests the body without a content coding, because a body encoded on the fly cannot be resumed.
  mutating func asksForFile() {
    if decoding == .negotiated, headers["Accept-Encoding"] == nil { headers["Accept-Encoding"] = "identity" }
  }
}
