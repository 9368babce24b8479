// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit

import class RunLoopCore.Port
import class RunLoopCore.RunLoop
import class RunLoopCore.Timer
import class RunLoopFoundation.NotificationQueue
import class RunLoopFoundation.PortMessage
import protocol RunLoopFoundation.PortDelegate

final class Foundations: Sendable {
  private let worker: ResidentThread
  private var loop: RunLoop { worker.runLoop }

  init(on worker: ResidentThread) { self.worker = worker }

  func run() {
    stream()
    notification()
    plainNotification()
    delegate()
    stage()
    source()
    timer()
    fileHandle()
  }

  /// Calls a function on the loop's thread, and waits until its effect has set a flag.
  private func onThread(_ body: @escaping @Sendable (Flag) -> Void) {
    let done = Flag()
    try? worker.performAndWait { body(done) }
    done.wait()
  }

  private func stream() {
    onThread { done in
      let stream = InputStream(data: Data([1]))
      stream.delegate = StreamListener.shared
      StreamListener.shared.done = done
      stream.schedule(in: RunLoop.current, forMode: .default)
      stream.open()
    }
  }

  private func observe(_ name: String, _ done: Flag) {
    _ = NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in
      done.set()
    }
  }

  private func notification() {
    onThread { [self] done in
      observe("one", done)
      NotificationQueue.default.enqueue(
        Notification(name: .init("one")), postingStyle: .asap, coalesceMask: [], forModes: nil)
    }
  }

  private func plainNotification() {
    onThread { [self] done in
      observe("two", done)
      NotificationQueue.default.enqueue(Notification(name: .init("two")), postingStyle: .asap)
    }
  }

  private func delegate() {
    onThread { done in
      let port = Port()
      PortListener.shared.done = done
      port.setDelegate(PortListener.shared)
      RunLoop.current.add(port, forMode: .default)
      try? port.send(Port.Message(id: 1))
    }
  }

  private func stage() {
    let done = Flag()
    let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in done.set() }
    loop.add(observer, forMode: .default)
    loop.wakeUp()
    done.wait()
    observer.invalidate()
  }

  private func source() {
    onThread { done in
      let source = RunLoop.Source { done.set() }
      RunLoop.current.add(source, forMode: .default)
      source.signal()
      RunLoop.current.wakeUp()
    }
  }

  private func timer() {
    let done = Flag()
    loop.add(Timer(fire: Date(), interval: 0, repeats: false) { _ in done.set() }, forMode: .default)
    done.wait()
  }

  private func fileHandle() {
    onThread { done in
      let pipe = Pipe()
      _ = NotificationCenter.default.addObserver(
        forName: .NSFileHandleDataAvailable, object: pipe.fileHandleForReading, queue: nil
      ) { _ in done.set() }
      pipe.fileHandleForReading.waitForDataInBackgroundAndNotify(forModes: [.default])
      pipe.fileHandleForWriting.write(Data([1]))
    }
  }
}

final class StreamListener: NSObject, StreamDelegate {
  // Used by the worker's thread only.
  nonisolated(unsafe) static let shared = StreamListener()
  var done: Flag?

  func stream(_ stream: Stream, handle event: Stream.Event) {
    done?.set()
    done = nil
    stream.close()
  }
}

final class PortListener: PortDelegate {
  // Used by the worker's thread only.
  nonisolated(unsafe) static let shared = PortListener()
  var done: Flag?

  func handle(_ message: PortMessage) { done?.set() }
}
