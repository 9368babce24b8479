// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The state of a loop at one moment.
public struct LoopSnapshot: Sendable, Hashable, Codable {
  /// The kernel's number of the loop's thread.
  public let thread: Int32
  /// The name of the thread's object, `main` for the first thread, otherwise the kernel's name.
  public let name: String
  /// The name of the loop, `RunLoop.label`.
  public let label: String
  /// The mode of the innermost run, by its raw value; nil outside every run.
  public let mode: String?
  /// How many runs are active, one within the other.
  public let depth: Int
  /// Whether the loop waits for something to happen.
  public let isWaiting: Bool
  /// How many blocks, jobs and hand-offs wait.
  public let waitingBlocks: Int
  /// How many times the loop has slept or looked, as of its last sleep.
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
  /// The current state of every loop of this process, ordered by thread.
  ///
  /// Can be called from any thread, and does not wait for any loop.
  public static var loops: [LoopSnapshot] { RunLoopRegistry.shared.all.map(LoopSnapshot.init) }
}

extension RunLoop {
  /// The name of the loop in the instruments; nil by default, and then they use the name of its thread.
  ///
  /// It is kept until the loop's thread ends. Can be used from any thread.
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
