// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Writes the body of a successful answer to a file.
///
/// The loader's thread.
final class FileReceiver: Receiver, @unchecked Sendable {
  // Sendable: used by the loader's thread alone, but for the mark.

  let file: PartFile
  private let done: @Sendable (Result<HTTP.Response, HTTP.Error>) -> Void
  /// Whether the answer is one whose body the file is for.
  private var isWriting = false
  private var hasBegun = false
  private let hasEnded = Atomic<Bool>(false)

  init(_ file: PartFile, _ done: @escaping @Sendable (Result<HTTP.Response, HTTP.Error>) -> Void) {
    self.file = file
    self.done = done
  }

  func prepare() throws(HTTP.Error) -> OperationState.Part? { file.kept }

  var canRestart: Bool { true }
  var defaultLimit: Int64? { nil }

  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) {
    // The text of an error is not the file.
    hasBegun = true
    isWriting = (200...299).contains(response.status)
    if isWriting { try file.begin(response, at: offset) }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool {
    if isWriting { try file.write(bytes) }
    return true
  }

  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool {
    // Everything may have been there before, and then nothing was begun.
    guard isWriting || !hasBegun && file.kept.received > 0 && file.kept.received == file.kept.total else { return true }
    isPutAway = true
    // A disk may take its time, and other transfers do not wait for it.
    DispatchQueue.global().async { [self] in
      let error = file.putAway { hasEnded.load(ordering: .acquiring) }
      file.letGo()
      done(error)
    }
    return false
  }

  private var isPutAway = false

  func finish(_ result: Result<HTTP.Response, HTTP.Error>) {
    hasEnded.store(true, ordering: .releasing)
    // Before the end is reported: whoever hears of it may begin another download.
    if !isPutAway {
      file.leave()
      file.letGo()
    }
    done(result)
  }
}
