// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A stream that can be read once.
final class StreamOnce: @unchecked Sendable {
  // Sendable: the lock guards the stream, which is used only by the code that takes it.
  private let lock = NSLock()
  private var stream: InputStream?

  init(_ stream: InputStream) { self.stream = stream }

  /// Returns the stream to the first caller.
  func take() -> InputStream? {
    lock.withLock {
      defer { stream = nil }
      return stream
    }
  }
}

/// The body of a multipart form, read part by part so that files need not be in memory.
///
/// Like any stream, it is used by one thread at a time. It can be read again from the beginning; see ``fresh()``.
final class AFMultipartBodyStream: InputStream {

  /// The data of a part.
  enum Source: Sendable {
    case data(Data)
    /// A file, of which `length` bytes are sent.
    case file(URL, length: Int)
    /// A stream, of which `length` bytes are sent, once.
    case stream(StreamOnce, length: Int)

    var length: Int {
      switch self {
      case .data(let data): data.count
      case .file(_, let length), .stream(_, let length): length
      }
    }
  }

  /// The speed at which the body is read.
  struct Throttle {
    /// The maximum number of bytes per read.
    var packetSize = Int.max
    /// The delay after each read in seconds.
    var delay: TimeInterval = 0
  }

  /// The total length in bytes; nil if a source has a negative length, or the sum exceeds `Int.max`.
  let length: Int?
  private let sources: [Source]
  private let throttle: Throttle
  private var next = 0
  private var current: InputStream?
  /// The number of bytes left in the current source.
  private var rest = 0
  private var status = Status.notOpen
  private var failed: (any Error)?

  init(_ sources: [Source], _ throttle: Throttle = Throttle()) {
    (self.sources, self.throttle) = (sources, throttle)
    length = AFMultipartBodyStream.length(of: sources)
    super.init(data: Data())
  }

  private static func length(of sources: [Source]) -> Int? {
    var total = 0
    for source in sources {
      let (sum, overflow) = total.addingReportingOverflow(source.length)
      guard source.length >= 0, !overflow else { return nil }
      total = sum
    }
    return total
  }

  /// Returns the same body from its beginning; reading it fails if a part is a stream that has been read.
  func fresh() -> AFMultipartBodyStream { AFMultipartBodyStream(sources, throttle) }

  var isRepeatable: Bool { sources.allSatisfy { if case .stream = $0 { false } else { true } } }

  override var streamStatus: Status { status }
  override var streamError: (any Error)? { failed }
  override var hasBytesAvailable: Bool { status == .open }

  override func open() {
    guard status == .notOpen else { return }
    guard length != nil else {
      let text = "the length of a part is negative, or that of the form is too great"
      failed = CocoaError(.fileReadUnknown, userInfo: [NSLocalizedDescriptionKey: text])
      status = .error
      return
    }
    status = .open
  }

  override func close() {
    current?.close()
    current = nil
    status = .closed
  }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    guard status == .open else { return status == .error ? -1 : 0 }
    var count = 0
    let len = min(len, throttle.packetSize)
    while count < len {
      if current == nil {
        guard next < sources.count else { break }
        begin(sources[next])
        next += 1
      }
      guard let current else { continue }
      let taken = rest > 0 ? current.read(buffer + count, maxLength: min(len - count, rest)) : 0
      if taken < 0 || (taken == 0 && rest > 0) {
        // If a file has become shorter, the body would end before its announced length.
        failed = current.failure ?? CocoaError(.fileReadUnknown)
        status = .error
        return -1
      }
      count += taken
      rest -= taken
      if rest == 0 {
        current.close()
        self.current = nil
      }
    }
    if count == 0, next == sources.count { status = .atEnd }
    if count > 0, throttle.delay > 0 { Foundation.Thread.sleep(forTimeInterval: throttle.delay) }
    return count
  }

  private func begin(_ source: Source) {
    rest = source.length
    let stream: InputStream?
    switch source {
    case .data(let data): stream = InputStream(data: data)
    case .file(let url, _): stream = InputStream(url: url)
    case .stream(let once, _): stream = once.take()
    }
    // A source that cannot be opened fails when it is read.
    let opened = stream ?? InputStream(data: Data())
    opened.open()
    current = opened
  }
}
