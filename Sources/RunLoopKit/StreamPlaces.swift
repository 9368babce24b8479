// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore

/// The modes in which a stream stands, and the descriptor that is waited for there on its behalf.
final class StreamPlaces: @unchecked Sendable {
  // Sendable: the lock guards the places, the source and the reports; the rest belongs to the loop's thread.

  /// What a wait for a stream that is being opened was begun with.
  private struct Attempt: Equatable {
    let transfers: Int
    let reports: Int
  }

  private struct Place {
    let loop: RunLoop
    let mode: RunLoop.Mode
  }

  private let lock = Lock()
  private var places: [Place] = []
  /// The stream, as long as it is in a mode.
  private var held: Stream?
  private var source: RunLoop.DescriptorSource?
  private var reports = 0

  /// Whether the descriptor was found ready, and nobody was told yet.
  var isReady = false
  private var attempt: Attempt?
  /// The attempt during which the descriptor was found ready.
  private var answered: Attempt?
  /// The descriptor that the system has refused to wait for.
  private var unwatchable: Int32?
}

// Any thread.
extension StreamPlaces {
  /// Enters a mode, and holds the stream.
  func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, _ stream: Stream?) {
    lock.withLock {
      places.append(Place(loop: loop, mode: mode))
      held = stream
      do {
        if let source { try loop.add(source, forMode: mode) }
      } catch {
        // The next wait tries again, and says what came of it.
        source?.invalidate()
        source = nil
      }
    }
  }

  /// Leaves a mode.
  func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    // The last reference is let go outside the lock.
    let released = lock.withLock { () -> Stream? in
      if let index = places.firstIndex(where: { $0.loop === loop && $0.mode == mode }) { places.remove(at: index) }
      if let source { loop.remove(source, forMode: mode) }
      guard places.isEmpty else { return nil }
      defer { held = nil }
      return held
    }
    withExtendedLifetime(released) {}
  }

  /// Has every loop look at the stream.
  func reportChange() {
    let loops = lock.withLock {
      reports += 1
      return places.map(\.loop)
    }
    for loop in loops { loop.wakeUp() }
  }

  /// The descriptor is waited for no more, until ``wait(for:_:isOpening:transfers:ready:)``.
  func pause() { lock.withLock { source }?.pause() }

  func invalidate() {
    lock.withLock {
      defer { source = nil }
      return source
    }?.invalidate()
  }
}

// The loop's thread.
extension StreamPlaces {
  /// Waits for a descriptor, or goes on waiting.
  ///
  /// - Parameter ready: Called when it is ready.
  /// - Returns: False if the system cannot wait for it.
  func wait(
    for events: RunLoop.DescriptorSource.Events, at descriptor: Int32, isOpening: Bool, transfers: Int,
    ready: @escaping @Sendable () -> Void
  ) -> Bool {
    let attempt = Attempt(transfers: transfers, reports: lock.withLock { reports })
    self.attempt = isOpening ? attempt : nil
    // A descriptor that was ready and has not opened its stream would be ready in every pass.
    guard !isOpening || answered != attempt else {
      pause()
      return true
    }
    guard unwatchable != descriptor else { return false }
    if lock.withLock({ source?.descriptor }) != descriptor { invalidate() }
    unwatchable = nil
    do {
      if let source = lock.withLock({ source }) {
        try source.watch(for: events)
      } else {
        try make(descriptor, events, ready)
      }
      return true
    } catch {
      invalidate()
      if case .cannotWatch(_, let failure) = error, failure.number == EPERM || failure.number == EBADF {
        // Asking the system in each pass would change nothing.
        unwatchable = descriptor
      } else {
        // The system has too few descriptors or too little memory, which may be over in the next pass.
        Diagnostic.coreFoundation.report(
          "a scheduled stream counts as ready until a later pass can watch its descriptor: \(error)")
      }
      return false
    }
  }

  private func make(
    _ descriptor: Int32, _ events: RunLoop.DescriptorSource.Events, _ ready: @escaping @Sendable () -> Void
  ) throws(RunLoopError) {
    let source = RunLoop.DescriptorSource(descriptor: descriptor, events: events) { [weak self] _, _ in
      guard let self else { return }
      isReady = true
      answered = attempt
      ready()
      isReady = false
    }
    try lock.withLock { () throws(RunLoopError) in
      self.source = source
      for place in places { try place.loop.add(source, forMode: place.mode) }
    }
  }
}
