// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// The result of reading from a body source.
enum BodyRead: Equatable {
  case bytes(Int)
  case end
  /// No bytes are available yet. The source reports when there are.
  case wait
  case failed(String)
}

/// Supplies the body of a request while it is sent, on the loader's thread.
protocol BodySource: AnyObject {
  /// The length in bytes; nil if it is unknown.
  var length: Int64? { get }
  func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead
  /// Starts over from the beginning. Returns false if that is not possible.
  func rewind() -> Bool
  func close()
}

extension HTTP.Content {
  /// Opens the body to send it once.
  ///
  /// - Parameter onBytes: Called from any thread when bytes or the end are available after ``BodyRead/wait``.
  func open(onBytes: @escaping @Sendable () -> Void) throws(HTTP.Error) -> any BodySource {
    switch kind {
    case .bytes(let bytes): return MemorySource(bytes)
    case .file(let path): return try FileSource(path)
    case .stream(let length, let feed):
      let pipe = UploadPipe(length: length, onBytes: onBytes)
      pipe.start(feed)
      return PipeSource(pipe)
    case .chain(let contents): return try ChainSource(contents, onBytes: onBytes)
    }
  }
}

final class MemorySource: BodySource {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var length: Int64? { Int64(bytes.count) }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
    let count = min(buffer.count, bytes.count - position)
    guard count > 0 else { return .end }
    bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<position + count])) }
    position += count
    return .bytes(count)
  }

  func rewind() -> Bool {
    position = 0
    return true
  }

  func close() {}
}

final class FileSource: BodySource {
  private let name: String
  private let size: Int64
  private var descriptor: Int32
  private var position: Int64 = 0

  /// - Parameter what: A description of the file for error messages.
  init(_ path: String, _ what: String = "the body") throws(HTTP.Error) {
    name = "\(what) \(path)"
    guard !path.utf8.contains(0) else {
      throw .init(.invalidRequest, "the path \(path.debugDescription) of \(what) contains a zero byte")
    }
    descriptor = RunLoopLibC.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw .init(.invalidRequest, "\(name) cannot be opened: \(systemText(errno))")
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      _ = RunLoopLibC.close(descriptor)
      throw .init(.invalidRequest, "\(name) is not a file")
    }
    size = Int64(status.st_size)
  }

  deinit { close() }

  var length: Int64? { size }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
    let wanted = min(Int64(buffer.count), size - position)
    guard wanted > 0 else { return .end }
    let count = pread(descriptor, buffer.baseAddress, Int(wanted), Int(position))
    if count < 0 { return .failed("\(name) cannot be read: \(systemText(errno))") }
    if count == 0 { return .failed("\(name) has become shorter than \(size) bytes") }
    position += Int64(count)
    return .bytes(count)
  }

  func readWhole() throws(HTTP.Error) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(size))
    var count = 0
    while count < bytes.count {
      let read = bytes.withUnsafeMutableBytes { self.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count...])) }
      switch read {
      case .bytes(let more): count += more
      case .end, .wait: throw HTTP.Error(.invalidRequest, "\(name) has become shorter")
      case .failed(let detail): throw HTTP.Error(.invalidRequest, detail)
      }
    }
    return bytes
  }

  func rewind() -> Bool {
    position = 0
    return true
  }

  func close() {
    guard descriptor >= 0 else { return }
    _ = RunLoopLibC.close(descriptor)
    descriptor = -1
  }
}

final class PipeSource: BodySource {
  private let pipe: UploadPipe

  init(_ pipe: UploadPipe) { self.pipe = pipe }

  var length: Int64? { pipe.length }
  func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead { pipe.read(into: buffer) }
  func rewind() -> Bool { false }
  func close() { pipe.close() }
}

func systemText(_ number: Int32) -> String { String(cString: strerror(number)) }
