import RunLoopCore
import Synchronization

/// A loop on a thread of the package's own, for the ports that are in no loop of the program's: their requests as a sequence,
/// replies that tasks wait for, and the death of a peer that somebody wants to know of.
enum MessageService {
  /// The loop, whose thread is started by the first who asks.
  static let loop: RunLoop = {
    let made = Made()
    let thread = startThread { () -> Bool in
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      made.publish(loop)
      while true { loop.run() }
    }
    // The thread runs as long as the process.
    _ = Unmanaged.passRetained(thread)
    return made.wait()
  }()

  private final class Made: @unchecked Sendable {
    // Sendable: the variable is guarded by the lock.
    private let word = Atomic<UInt32>(0)
    private let lock = Lock()
    private var loop: RunLoop?

    func publish(_ loop: RunLoop) {
      lock.withLock { self.loop = loop }
      word.store(1, ordering: .releasing)
      word.futexWake()
    }

    func wait() -> RunLoop {
      while true {
        word.futexWait(while: 0)
        if let loop = lock.withLock({ loop }) { return loop }
      }
    }
  }
}
