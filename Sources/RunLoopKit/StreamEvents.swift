// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Determines the next event that a stream's delegate receives.
struct StreamEvents: Sendable {
  /// The observed state of a stream.
  struct Sight {
    var status: Stream.Status
    /// Whether the stream has bytes or space, depending on its direction.
    var isReady: Bool
    /// A value that changes when the stream is read or written, or nil if there is none.
    var position: Int?
    var hasDelegate = true
  }

  /// The event that reports readiness in the stream's direction.
  let ready: Stream.Event
  private(set) var isOver = false
  private var isOpen = false
  /// The position when readiness was last reported.
  private var toldPosition: Int?

  init(ready: Stream.Event) { self.ready = ready }

  /// Returns the next event, or nil if there is none.
  mutating func next(_ sight: Sight) -> Stream.Event? {
    guard !isOver else { return nil }
    switch sight.status {
    case .notOpen, .opening:
      return nil
    case .closed:
      isOver = true
      return nil
    case .error:
      isOver = true
      return .errorOccurred
    case .open, .reading, .writing, .atEnd:
      // A delegate that is set later is notified from the opening on.
      guard isOpen || !sight.hasDelegate else {
        isOpen = true
        return .openCompleted
      }
    }
    if sight.status == .atEnd {
      isOver = true
      return .endEncountered
    }
    // Readiness is reported again only if the stream was used since.
    guard sight.isReady, sight.hasDelegate, sight.position == nil || sight.position != toldPosition else { return nil }
    toldPosition = sight.position
    return ready
  }

  /// Whether there is an event to report, or the stream has ended.
  func isDue(_ sight: Sight) -> Bool {
    var events = self
    return events.next(sight) != nil || events.isOver
  }

  /// Whether the delegate would be notified if the stream became ready.
  func awaitsReadiness(_ sight: Sight) -> Bool {
    guard sight.status != .atEnd else { return false }
    var (events, sight) = (self, sight)
    sight.isReady = true
    return events.next(sight) == ready
  }
}
