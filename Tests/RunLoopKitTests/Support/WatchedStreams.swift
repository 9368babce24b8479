// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import TestSupport

/// A custom input stream over a descriptor or a buffer, which sets its own status.
///
/// The Foundation part of it is an unused empty stream.
final class OwnInput: InputStream, WatchedStream {
  var number: Int32?
  var buffer: [UInt8] = []
  var status = Status.notOpen
  /// Whether a stream that is opening has opened, or nil to open immediately.
  var hasOpened: (() -> Bool)?
  var onRead: ((Int) -> Void)?
  var onClose: (() -> Void)?
  private(set) var transferCount = 0
  private weak var listener: (any StreamDelegate)?

  init(_ number: Int32? = nil) {
    self.number = number
    super.init(data: Data())
  }

  override var delegate: (any StreamDelegate)? {
    get { listener }
    set { listener = newValue }
  }

  var watchedDescriptor: Int32? { buffer.isEmpty ? number : nil }

  override var streamStatus: Status {
    if status == .opening, hasOpened?() == true { status = .open }
    return status
  }

  override var hasBytesAvailable: Bool { !buffer.isEmpty }
  override func open() { status = hasOpened == nil ? .open : .opening }

  override func close() {
    status = .closed
    onClose?()
  }

  /// Reads from the buffer if it is not empty, or else from the descriptor.
  override func read(_ bytes: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
    transferCount += 1
    if !buffer.isEmpty {
      let taken = buffer.prefix(count)
      for (index, byte) in taken.enumerated() { bytes[index] = byte }
      buffer.removeFirst(taken.count)
      onRead?(taken.count)
      return taken.count
    }
    guard let number else { return 0 }
    let length = Glibc.read(number, bytes, count)
    if length == 0 { status = .atEnd }
    if length < 0, errno != EAGAIN { status = .error }
    return length
  }
}

/// A custom output stream over a descriptor, or a buffer of limited size.
final class OwnOutput: OutputStream, WatchedStream {
  var number: Int32?
  var room = 0
  var written: [UInt8] = []
  var onWrite: (([UInt8]) -> Void)?
  var status = Status.notOpen
  private(set) var transferCount = 0
  private weak var listener: (any StreamDelegate)?

  static func over(_ number: Int32?) -> OwnOutput {
    let stream = OwnOutput(toMemory: ())
    stream.number = number
    return stream
  }

  override var delegate: (any StreamDelegate)? {
    get { listener }
    set { listener = newValue }
  }

  var watchedDescriptor: Int32? { number }
  override var streamStatus: Status { status }
  override var hasSpaceAvailable: Bool { room > 0 }
  override func open() { status = .open }
  override func close() { status = .closed }
  override func property(forKey key: PropertyKey) -> AnyObject? { nil }

  override func write(_ bytes: UnsafePointer<UInt8>, maxLength count: Int) -> Int {
    transferCount += 1
    guard let number else {
      let taken = min(count, room)
      written += UnsafeBufferPointer(start: bytes, count: taken)
      room -= taken
      onWrite?(Array(UnsafeBufferPointer(start: bytes, count: taken)))
      return taken
    }
    let length = Glibc.send(number, bytes, count, Int32(MSG_NOSIGNAL))
    if length < 0, errno != EAGAIN { status = .error }
    return length
  }
}

final class StreamListener: StreamDelegate, @unchecked Sendable {
  // Sendable: used only on the thread of the stream's loop.
  private let log: Log
  private let act: @Sendable (Stream, Stream.Event) -> Void

  init(_ log: Log, _ act: @escaping @Sendable (Stream, Stream.Event) -> Void = { _, _ in }) {
    self.log = log
    self.act = act
  }

  func stream(_ stream: Stream, handle event: Stream.Event) {
    switch event {
    case .openCompleted: log.write("opened")
    case .hasBytesAvailable: log.write("bytes")
    case .hasSpaceAvailable: log.write("space")
    case .endEncountered: log.write("end")
    case .errorOccurred: log.write("error")
    default: log.write("\(event.rawValue)")
    }
    act(stream, event)
  }
}

extension Stream {
  func read(_ count: Int, _ log: Log) {
    guard let stream = self as? InputStream else { return }
    var bytes = [UInt8](repeating: 0, count: count)
    let length = stream.read(&bytes, maxLength: count)
    log.write(length < 0 ? "failed" : length == 0 ? "nothing" : String(decoding: bytes.prefix(length), as: UTF8.self))
  }

  func write(_ text: String, _ log: Log) {
    guard let stream = self as? OutputStream else { return }
    let length = stream.write(Array(text.utf8), maxLength: text.utf8.count)
    log.write(length < 0 ? "failed" : "\(length)")
  }
}
