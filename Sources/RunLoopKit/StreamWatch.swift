// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore

/// A stream that is scheduled in modes of a loop, with a source to notify its delegate and an observer to check it.
final class StreamWatch: @unchecked Sendable {
  // Sendable: only the loop's thread uses the stream, the events and the length. The places have a lock. The
  // references do not change after initialization, and reading the weak one is atomic.

  private weak var stream: Stream?
  private let places = StreamPlaces()
  private var events: StreamEvents
  /// The length of the data written to memory at the last check, because determining it copies the data.
  private var lengthInMemory: Int?
  private var source: RunLoop.Source?
  private var observer: RunLoop.Observer?

  private init(_ stream: Stream) {
    self.stream = stream
    events = StreamEvents(ready: stream is OutputStream ? .hasSpaceAvailable : .hasBytesAvailable)
    source = RunLoop.Source(
      schedule: { [weak self] loop, mode in self?.places.enter(loop, mode, self?.stream) },
      cancel: { [places] loop, mode in places.leave(loop, mode) },
      perform: { [weak self] in self?.tell() })
    observer = RunLoop.Observer(activities: [.beforeSources, .beforeWaiting]) { [weak self] _, _ in self?.look() }
  }

  deinit { end() }
}

// The table of all watches, which are kept after their places are removed so that no event is reported twice.
extension StreamWatch {
  private final class Table: @unchecked Sendable {
    // Sendable: the lock guards the watches.
    let lock = Lock()
    var watches: [ObjectIdentifier: StreamWatch] = [:]
  }

  private static let table = Table()

  static func schedule(_ stream: Stream, in loop: RunLoop, _ mode: RunLoop.Mode) {
    guard let watch = watch(of: stream, making: true), let source = watch.source, let observer = watch.observer else {
      return
    }
    // The observer's loop is the stream's. Another loop rejects and reports it; its thread may not use the stream too.
    guard loop.add(observer, forMode: mode) || loop.contains(observer, forMode: mode) else { return }
    loop.add(source, forMode: mode)
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

  /// Makes the observers of the loops check the stream in their next pass.
  static func reportChange(of stream: Stream) { watch(of: stream, making: false)?.places.reportChange() }

  private static func watch(of stream: Stream, making: Bool) -> StreamWatch? {
    // Both are released without the lock, because releasing the last reference to a stream calls its deinitializer,
    // which may remove it from a loop.
    var gone: [StreamWatch] = []
    var present: [Stream] = []
    defer { withExtendedLifetime((gone, present)) {} }
    return table.lock.withLock {
      let key = ObjectIdentifier(stream)
      if let watch = table.watches[key], watch.stream != nil { return watch }
      guard making else { return nil }
      for (key, watch) in table.watches {
        if let stream = watch.stream {
          present.append(stream)
        } else {
          table.watches[key] = nil
          gone.append(watch)
        }
      }
      let watch = StreamWatch(stream)
      table.watches[key] = watch
      return watch
    }
  }
}

// These methods are called on the loop's thread.
extension StreamWatch {
  private func tell() {
    guard let stream else { return end() }
    if let event = events.next(sight(of: stream, afterEvent: false)) {
      places.isReady = false
      noteCall(on: stream.delegate.map { type(of: $0) })
      stream.delegate?.stream(stream, handle: event)
    }
    look(at: stream, afterEvent: true)
  }

  private func look() {
    guard let stream else { return end() }
    look(at: stream, afterEvent: false)
  }

  private func look(at stream: Stream, afterEvent: Bool) {
    guard !(afterEvent && events.isOver) else { return end() }
    let sight = sight(of: stream, afterEvent: afterEvent)
    if events.isDue(sight) {
      source?.signal()
    } else if let stream = stream as? any WatchedStream, !wait(for: stream, sight) {
      places.isReady = true
      source?.signal()
    }
  }

  /// Waits for the descriptor of a stream, if there is one and its delegate needs it, or returns false on failure.
  private func wait(for stream: any WatchedStream, _ sight: StreamEvents.Sight) -> Bool {
    let isOpening = sight.status == .opening
    guard isOpening || events.awaitsReadiness(sight), let descriptor = stream.watchedDescriptor else {
      places.pause()
      return true
    }
    return places.wait(
      for: stream.watchedEvents, at: descriptor, isOpening: isOpening, transfers: stream.transferCount
    ) { [weak self] in self?.tell() }
  }

  /// Leaves all modes permanently.
  private func end() {
    places.invalidate()
    source?.invalidate()
    observer?.invalidate()
  }

  private func sight(of stream: Stream, afterEvent: Bool) -> StreamEvents.Sight {
    var sight = StreamEvents.Sight(status: stream.streamStatus, isReady: false, hasDelegate: stream.delegate != nil)
    if let watched = stream as? any WatchedStream {
      sight.position = watched.transferCount
      if watched.watchedDescriptor != nil {
        sight.isReady = places.isReady
        return sight
      }
    }
    switch stream {
    case let stream as InputStream: sight.isReady = stream.hasBytesAvailable
    case let stream as OutputStream:
      sight.isReady = stream.hasSpaceAvailable
      sight.position = sight.position ?? position(of: stream, afterEvent: afterEvent)
    default: break
    }
    return sight
  }

  /// Returns the position of an output stream, which for a stream to memory is the one after the last event.
  private func position(of stream: OutputStream, afterEvent: Bool) -> Int? {
    if let offset = stream.property(forKey: .fileCurrentOffsetKey) as? NSNumber { return offset.intValue }
    if afterEvent { lengthInMemory = (stream.property(forKey: .dataWrittenToMemoryStreamKey) as? NSData)?.length }
    return lengthInMemory
  }
}
