// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore

/// A stream that is scheduled in modes of a loop: a source tells the delegate, an observer looks what there is to tell.
final class StreamWatch: @unchecked Sendable {
  // Sendable: the table's lock guards `places` and `held`; the stream and its events belong to the loop's thread.

  private weak var stream: Stream?
  /// The stream, as long as it is in a mode.
  private var held: Stream?
  private var places = 0
  private var events: StreamEvents
  /// How long what was written to memory was when it was looked at, which copies it.
  private var lengthInMemory: Int?
  private var source: RunLoop.Source?
  private var observer: RunLoop.Observer?

  private init(_ stream: Stream) {
    self.stream = stream
    events = StreamEvents(ready: stream is OutputStream ? .hasSpaceAvailable : .hasBytesAvailable)
    source = RunLoop.Source(
      schedule: { [weak self] _, _ in self?.enter() }, cancel: { [weak self] _, _ in self?.leave() },
      perform: { [weak self] in self?.tell() })
    observer = RunLoop.Observer(activities: [.beforeSources, .beforeWaiting]) { [weak self] _, _ in self?.look() }
  }

  deinit {
    source?.invalidate()
    observer?.invalidate()
  }
}

// The table of all watches, which outlive their places, so that no event is told twice.
extension StreamWatch {
  private final class Table: @unchecked Sendable {
    // Sendable: the watches are guarded by the lock.
    let lock = Lock()
    var watches: [ObjectIdentifier: StreamWatch] = [:]
  }

  private static let table = Table()

  static func schedule(_ stream: Stream, in loop: RunLoop, _ mode: RunLoop.Mode) {
    guard let watch = watch(of: stream, making: true), let source = watch.source, let observer = watch.observer else {
      return
    }
    loop.add(source, forMode: mode)
    loop.add(observer, forMode: mode)
    source.signal()
    loop.wakeUp()
  }

  static func remove(_ stream: Stream, from loop: RunLoop, _ mode: RunLoop.Mode) {
    guard let watch = watch(of: stream, making: false), let source = watch.source, let observer = watch.observer else {
      return
    }
    loop.remove(source, forMode: mode)
    loop.remove(observer, forMode: mode)
  }

  private static func watch(of stream: Stream, making: Bool) -> StreamWatch? {
    var gone: [StreamWatch] = []
    defer { withExtendedLifetime(gone) {} }
    return table.lock.withLock {
      for (key, watch) in table.watches where watch.stream == nil {
        table.watches[key] = nil
        gone.append(watch)
      }
      let key = ObjectIdentifier(stream)
      if let watch = table.watches[key] { return watch }
      guard making else { return nil }
      let watch = StreamWatch(stream)
      table.watches[key] = watch
      return watch
    }
  }

  private func enter() {
    StreamWatch.table.lock.withLock {
      places += 1
      held = stream
    }
  }

  private func leave() {
    // The last reference is let go outside the lock.
    let released = StreamWatch.table.lock.withLock { () -> Stream? in
      places -= 1
      guard places == 0 else { return nil }
      defer { held = nil }
      return held
    }
    withExtendedLifetime(released) {}
  }
}

// On the loop's thread.
extension StreamWatch {
  private func tell() {
    guard let stream else { return end() }
    if let event = events.next(sight(of: stream, afterEvent: false)) { stream.delegate?.stream(stream, handle: event) }
    if events.isOver { return end() }
    if events.isDue(sight(of: stream, afterEvent: true)) { source?.signal() }
  }

  private func look() {
    guard let stream else { return end() }
    if events.isDue(sight(of: stream, afterEvent: false)) { source?.signal() }
  }

  /// Leaves all modes for good.
  private func end() {
    source?.invalidate()
    observer?.invalidate()
  }

  private func sight(of stream: Stream, afterEvent: Bool) -> StreamEvents.Sight {
    let status = stream.streamStatus
    if let stream = stream as? InputStream {
      return .init(status: status, isReady: stream.hasBytesAvailable, position: nil)
    }
    guard let stream = stream as? OutputStream else { return .init(status: status, isReady: false, position: nil) }
    let position = position(of: stream, afterEvent: afterEvent)
    return .init(status: status, isReady: stream.hasSpaceAvailable, position: position)
  }

  /// How far a stream has been written; of one to memory, what was so after the last event.
  private func position(of stream: OutputStream, afterEvent: Bool) -> Int? {
    if let offset = stream.property(forKey: .fileCurrentOffsetKey) as? NSNumber { return offset.intValue }
    if afterEvent { lengthInMemory = (stream.property(forKey: .dataWrittenToMemoryStreamKey) as? NSData)?.length }
    return lengthInMemory
  }
}
