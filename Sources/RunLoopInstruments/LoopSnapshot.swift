// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A snapshot of a loop's state.
public struct LoopSnapshot: Sendable, Hashable, Codable {
  /// The kernel's ID of the loop's thread.
  public let thread: Int32
  /// The name of the thread's object, `main` for the first thread, or else the kernel's name for it.
  public let name: String
  /// The name of the loop, which is `RunLoop.label` if set and the thread's name otherwise.
  public let label: String
  /// The raw value of the innermost run's mode, or nil if the loop is not running.
  public let mode: String?
  /// The number of nested runs.
  public let depth: Int
  /// Whether the loop is waiting for an event.
  public let isWaiting: Bool
  /// The number of pending blocks, jobs and hand-offs.
  public let waitingBlocks: Int
  /// The number of times that the loop has slept or polled, as of its last sleep.
  public let waits: Int

  init(_ loop: RunLoop) {
    let face = loop.faceReading
    thread = loop.threadID
    name = loop.nameOfThread ?? "\(thread)"
    label = loop.label ?? name
    mode = loop.currentMode?.rawValue
    depth = face.depth
    isWaiting = face.isSleeping
    waitingBlocks = face.waitingBlocks
    waits = Int(truncatingIfNeeded: face.waits)
  }
}

extension Instruments {
  /// A snapshot of every loop of this process, ordered by thread.
  ///
  /// Can be called from any thread, and does not block on any loop.
  public static var loops: [LoopSnapshot] { RunLoopRegistry.shared.all.map(LoopSnapshot.init) }
}

extension RunLoop {
  /// The name of the loop in the instruments.
  ///
  /// The default is `nil`, which means the name of its thread.
  ///
  /// The name is kept until the loop's thread ends. Can be used from any thread.
  public var label: String? {
    get { attachment(LoopLabel.self)?.text }
    set {
      guard let attachment = attachment(LoopLabel.self, orMake: LoopLabel.init)?.attachment else { return }
      attachment.text = newValue
    }
  }
}

private final class LoopLabel: LoopAttachment, @unchecked Sendable {
  // Sendable: the lock guards the text.
  private let lock = Lock()
  private var kept: String?

  var text: String? {
    get { lock.withLock { kept } }
    set { lock.withLock { kept = newValue } }
  }

  func loopDidEnd() {}
}
