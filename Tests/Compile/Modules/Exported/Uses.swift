// SPDX-License-Identifier: Apache-2.0

// The module's other files keep their imports, and their names now refer to RunLoopKit's types.
import Foundation

let tickingLoop: RunLoopCore.RunLoop = RunLoop.main
let worker: RunLoopThreads.Thread = Thread {}

func tick() {
  let timer: RunLoopCore.Timer = Timer(timeInterval: 1, repeats: true) { $0.invalidate() }
  let port: RunLoopCore.Port = Port()
  RunLoop.main.add(timer, forMode: .common)
  RunLoop.main.add(port, forMode: .default)
  RunLoop.main.perform { print("on the main thread") }
  RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.1))
  RunLoop.main.stop()
  NotificationQueue.default.enqueue(Notification(name: .NSThreadWillExit), postingStyle: .asap)
  Thread.current.threadDictionary["key"] = 1
  timer.fireDate = .distantFuture
}

func listen(_ input: InputStream, _ handle: FileHandle) {
  input.schedule(in: RunLoop.current, forMode: .default)
  handle.readInBackgroundAndNotify(forModes: [.common])
}
