// SPDX-License-Identifier: Apache-2.0

extension HTTP.Client {
  /// Makes a request and writes the body of its answer to a file.
  ///
  /// The bytes go to `NAME.part`, and what they are a part of to `NAME.part.json`. When all have arrived, the file is
  /// written to the disk and renamed, so that `NAME` is complete or not there. If the request ends before, the next
  /// download goes on with what is there, as long as the server has the same version of the body (a strong tag or a
  /// date) and says how long it is; otherwise it begins afresh. An answer whose status is no success leaves `NAME` as
  /// it is: look at the status.
  ///
  /// - Parameters:
  ///   - request: What to ask for.
  ///   - path: Where the file is made; a file that is there is replaced.
  ///   - resuming: Whether to go on with what an earlier download has left.
  /// - Returns: The head of the answer. If the download went on with what an earlier one has left, its status is 206.
  /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/fileFailed`` if the file cannot be written or another download
  ///   writes it.
  public func download(
    _ request: HTTP.Request, to path: String, resuming: Bool = true
  ) async throws -> HTTP.Response {
    let file = try PartFile(path, url: PartNote.name(of: request.url), resumes: resuming)
    var request = request
    // What is coded on its way could not be gone on with.
    if request.headers["Accept-Encoding"] == nil { request.headers["Accept-Encoding"] = "identity" }
    return try await run(request) { FileReceiver(file, $0) }
  }
}
