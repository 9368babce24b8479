// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Writes the body of a successful response to a file.
final class FileReceiver: Receiver, @unchecked Sendable {
  // Sendable: the variables are used only on the loader's thread. The queue that stores the file owns it afterwards.

  let file: PartFile
  private let done: @Sendable (Result<HTTP.Response, HTTP.Error>) -> Void
  /// Whether the current response's body is written to the file.
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
    // The body of an error response is not written to the file.
    hasBegun = true
    isWriting = (200...299).contains(response.status)
    if isWriting { try file.begin(response, at: offset) }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool {
    if isWriting { try file.write(bytes) }
    return true
  }

  func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) throws(HTTP.Error) -> Bool {
    // If an earlier request had received everything, no response has begun.
    guard isWriting || !hasBegun && file.kept.received > 0 && file.kept.received == file.kept.total else { return true }
    isPutAway = true
    // Syncing may be slow, and other transfers must not wait for it.
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
    // Before the end is reported, because another download may then begin at once.
    if !isPutAway {
      file.leave()
      file.letGo()
    }
    done(result)
  }
}
