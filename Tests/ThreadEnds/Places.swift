// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit

import class Foundation.NotificationCenter
import class RunLoopCore.Port
import class RunLoopCore.RunLoop
import class RunLoopCore.Timer
import class RunLoopThreads.Thread

/// A place where our code calls user code when a thread ends.
struct Place: Sendable {
  let name: String
  /// Arranges for the use at that place; called on the thread before it ends.
  let prepare: @Sendable (_ use: @escaping @Sendable () -> Void) -> Void

  private init(_ name: String, _ prepare: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
    self.name = name
    self.prepare = prepare
  }

  static let all = [
    Place("cancel") { use in
      RunLoop.current.add(RunLoop.Source(cancel: { _, _ in use() }, perform: {}), forMode: .default)
    },
    Place("source") { use in
      let witness = Witness(use)
      RunLoop.current.add(RunLoop.Source { witness.touch() }, forMode: .common)
    },
    Place("timer") { use in
      let witness = Witness(use)
      RunLoop.current.add(Timer(timeInterval: 1000, repeats: true) { _ in witness.touch() }, forMode: .common)
    },
    Place("observer") { use in
      let witness = Witness(use)
      RunLoop.current.add(RunLoop.Observer(activities: .exit) { _, _ in witness.touch() }, forMode: "none")
    },
    Place("port") { use in
      let witness = Witness(use)
      RunLoop.current.add(Port { _, _ in witness.touch() }, forMode: .default)
    },
    Place("descriptor") { use in
      let witness = Witness(use)
      let pipe = Pipe()
      let source = RunLoop.DescriptorSource(descriptor: pipe.fileHandleForReading.fileDescriptor, events: .readable) {
        _, _ in
        withExtendedLifetime(pipe) { witness.touch() }
      }
      try? RunLoop.current.add(source, forMode: .default)
    },
    Place("block") { use in
      let witness = Witness(use)
      RunLoop.current.perform(inModes: ["none"]) { witness.touch() }
    },
    Place("perform") { use in
      let witness = Witness(use)
      _ = try? Thread.current.perform(inModes: ["none"]) { witness.touch() }
    },
    Place("delayed perform") { use in
      let witness = Witness(use)
      _ = try? Thread.current.perform(afterDelay: .seconds(1000)) { witness.touch() }
    },
    Place("threadDictionary") { use in Thread.current.threadDictionary["witness"] = Witness(use) },
    Place("will exit") { use in
      let thread = Thread.current
      let center = NotificationCenter.default
      let observer = Kept<(any NSObjectProtocol)?>(nil)
      // Swift 6.2's Foundation does not find an observer for an object that is not an NSObject.
      observer.value = center.addObserver(forName: .NSThreadWillExit, object: nil, queue: nil) { notification in
        guard notification.object as? Thread === thread else { return }
        use()
        if let known = observer.value { center.removeObserver(known) }
        observer.value = nil
      }
    },
    Place("notification") { use in
      let notification = Notification(name: Notification.Name("none"), object: Witness(use))
      NotificationQueue.default.enqueue(notification, postingStyle: .asap)
    },
  ]
}

/// A variable that one thread uses at a time.
final class Kept<Value>: @unchecked Sendable {
  // Sendable: the threads use it one after the other.
  var value: Value

  init(_ value: Value) { self.value = value }
}
