// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore

/// The modes in which a stream is scheduled, and the descriptor that is watched on its behalf.
final class StreamPlaces: @unchecked Sendable {
  // Sendable: the lock guards the places, the source and the reports. Only the loop's thread uses the rest.

  /// The state in which the wait for an opening stream began.
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
  /// The stream, which is retained while it is in a mode.
  private var held: Stream?
  private var source: RunLoop.DescriptorSource?
  private var reports = 0

  /// Whether the descriptor was found ready, and that has not been reported.
  var isReady = false
  private var attempt: Attempt?
  /// The attempt during which the descriptor was found ready.
  private var answered: Attempt?
  /// A descriptor that the system could not watch.
  private var unwatchable: Int32?
}

// These methods can be called from any thread.
extension StreamPlaces {
  /// Adds a mode, and retains the stream.
  func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, _ stream: Stream?) {
    lock.withLock {
      places.append(Place(loop: loop, mode: mode))
      held = stream
      do {
        if let source { try loop.add(source, forMode: mode) }
      } catch {
        // The next wait tries again, and reports the result.
        source?.invalidate()
        source = nil
      }
    }
  }

  /// Removes a mode.
  func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    // The last reference is released without the lock.
    let released = lock.withLock { () -> Stream? in
      if let index = places.firstIndex(where: { $0.loop === loop && $0.mode == mode }) { places.remove(at: index) }
      if let source { loop.remove(source, forMode: mode) }
      guard places.isEmpty else { return nil }
      defer { held = nil }
      return held
    }
    withExtendedLifetime(released) {}
  }

  /// Makes every loop check the stream.
  func reportChange() {
    let loops = lock.withLock {
      reports += 1
      return places.map(\.loop)
    }
    for loop in loops { loop.wakeUp() }
  }

  /// Stops watching the descriptor until ``wait(for:_:isOpening:transfers:ready:)`` is called.
  func pause() { lock.withLock { source }?.pause() }

  func invalidate() {
    lock.withLock {
      defer { source = nil }
      return source
    }?.invalidate()
  }
}

// These methods are called on the loop's thread.
extension StreamPlaces {
  /// Waits for a descriptor, or continues to wait.
  ///
  /// - Parameter ready: A closure called when the descriptor is ready.
  /// - Returns: `false` if the system cannot watch the descriptor.
  func wait(
    for events: RunLoop.DescriptorSource.Events, at descriptor: Int32, isOpening: Bool, transfers: Int,
    ready: @escaping @Sendable () -> Void
  ) -> Bool {
    let attempt = Attempt(transfers: transfers, reports: lock.withLock { reports })
    self.attempt = isOpening ? attempt : nil
    // If the descriptor was ready without the stream having opened, it would be ready in every pass.
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
        // Trying again in each pass would not help.
        unwatchable = descriptor
      } else {
        // The system lacks descriptors or memory, which may have changed in the next pass.
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
