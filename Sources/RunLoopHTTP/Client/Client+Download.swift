// SPDX-License-Identifier: Apache-2.0

extension HTTP.Client {
  /// Makes a request and writes the body of its answer to a file.
  ///
  /// The bytes go to `NAME.part`, and a description of the whole body to `NAME.part.json`. When all bytes have arrived,
  /// the file is written to the disk and renamed, so that `NAME` is complete or does not exist. If the request ends
  /// before, the next download goes on with the bytes that are there, as long as the server has the same version of the
  /// body (a strong tag or a date) and reports its length; otherwise it begins afresh. An answer whose status is not a
  /// success leaves `NAME` as it is: check the status. The bytes are those that the server has sent, even if it says
  /// that they are coded, unless ``HTTP/Request/decoding`` is ``HTTP/Decoding/always``.
  ///
  /// Only a part of the process's user that others cannot write is continued. In a directory in which others can make
  /// files, what they have put at these names is neither written to nor believed.
  ///
  /// - Parameters:
  ///   - request: The request to make.
  ///   - path: The file to make; an existing file is replaced.
  ///   - resuming: Whether to go on with the bytes that an earlier download has left.
  /// - Returns: The head of the answer. If the download went on with what an earlier one has left, its status is 206.
  /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/fileFailed`` if the file cannot be written, another download
  ///   writes it, or the path contains a zero byte.
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
  /// Asks for a body as it is stored: one that is coded on its way could not be continued.
  mutating func asksForFile() {
    if decoding == .negotiated, headers["Accept-Encoding"] == nil { headers["Accept-Encoding"] = "identity" }
  }
}
