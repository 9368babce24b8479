// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Which event a stream's delegate is told next, as a value.
struct StreamEvents: Sendable {
  /// What is seen of a stream.
  struct Sight {
    var status: Stream.Status
    /// Whether the stream has bytes or space; which of them is the direction's event.
    var isReady: Bool
    /// What changes when the stream is read or written; nil if that cannot be seen.
    var position: Int?
    /// Whether there is a delegate to be notified.
    var hasDelegate = true
  }

  /// What the direction's delegate is told if the stream is ready.
  let ready: Stream.Event
  private(set) var isOver = false
  private var isOpen = false
  /// The position when the stream was told to be ready last.
  private var toldPosition: Int?

  init(ready: Stream.Event) { self.ready = ready }

  /// The next event; nil if there is none yet, or none any more.
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
      // A delegate that comes late is notified from the opening on.
      guard isOpen || !sight.hasDelegate else {
        isOpen = true
        return .openCompleted
      }
    }
    if sight.status == .atEnd {
      isOver = true
      return .endEncountered
    }
    // It is notified again only if the stream was used since.
    guard sight.isReady, sight.hasDelegate, sight.position == nil || sight.position != toldPosition else { return nil }
    toldPosition = sight.position
    return ready
  }

  /// Whether there is something to be done.
  func isDue(_ sight: Sight) -> Bool {
    var events = self
    return events.next(sight) != nil || events.isOver
  }

  /// Whether the delegate would be notified that the stream is ready if it was.
  func awaitsReadiness(_ sight: Sight) -> Bool {
    guard sight.status != .atEnd else { return false }
    var (events, sight) = (self, sight)
    sight.isReady = true
    return events.next(sight) == ready
  }
}
