// SPDX-License-Identifier: Apache-2.0

// Hangs in every known way, or behaves in ways that are no hang, once another process watches. Exits when done.
//
//   hang-victim hangs SECONDS     thirteen loops that each hang in a different way for that time
//   hang-victim innocent SECONDS  six loops that are busy for that time without a hang
//   hang-victim short SECONDS     a loop in short call-outs, until it is killed
//   hang-victim late SECONDS      a loop that hangs before it is watched
//   hang-victim watched SECONDS   the thirteen, in a process that watches itself and prints what it finds
//   hang-victim backlog SECONDS   a loop with many posts, each of which takes five milliseconds
//   hang-victim exec              a loop, until it is watched and the process executes another program
//   hang-victim idle              loops that sleep and a watch, until it is killed
//   hang-victim pages KIB         forty loops that work now and then, on a system with pages of a given size
import CRunLoopRecorder
import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopThreads
import TestSupport

func makeWorker(_ name: String) -> ResidentThread { sure(try ResidentThread(name: name)) }

/// Waits until another process watches this one.
func waitForWatcher() { while Instruments.level < .record { usleep(5000) } }

endWithTest()
let arguments = CommandLine.arguments
let microseconds = UInt32((Double(arguments.count > 2 ? arguments[2] : "") ?? 1) * 1e6)

switch arguments.dropFirst().first {
case "hangs":
  let hangs = Hangs(lasting: microseconds)
  say("ready")
  waitForWatcher()
  hangs.run()
  say("interrupted \(Interruptions.count)")
  // Allows the watcher to see that the hangs are over.
  usleep(300_000)
case "innocent":
  let innocents = Innocents(lasting: microseconds)
  say("ready")
  waitForWatcher()
  innocents.run()
case "short":
  shortCalls()
case "late":
  let worker = makeWorker("late")
  worker.runLoop.perform { hangBeforeAnybodyLooks() }
  usleep(100_000)
  say("ready")
  while true { pause() }
case "watched":
  Watched(lasting: microseconds).run()
case "backlog":
  let worker = makeWorker("backlog")
  say("ready")
  waitForWatcher()
  let isOver = Flag()
  worker.runLoop.perform { postMuch(worker.runLoop, isOver) }
  isOver.wait()
  // Allows the watcher to see that the hang is over.
  usleep(300_000)
case "exec":
  let worker = makeWorker("before exec")
  while !worker.runLoop.isWaiting { usleep(100) }
  say("ready")
  waitForWatcher()
  usleep(200_000)
  var words: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("600"), nil]
  execv("/bin/sleep", &words)
case "idle":
  let workers = (0..<3).map { makeWorker("idle \($0)") }
  let watch = HangWatch { say("found \($0.threadName)") }
  for worker in workers { while !worker.runLoop.isWaiting { usleep(100) } }
  say("ready")
  withExtendedLifetime((workers, watch)) { while true { pause() } }
case "guest":
  do {
    let guest = try RunLoop.Guest()
    RunLoop.current.add(RunLoop.Source {}, forMode: .default)
    while guest.timeoutMilliseconds == 0 { guest.service() }
    say("ready")
    while true {
      var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
      poll(&entry, 1, guest.timeoutMilliseconds)
      guest.service()
    }
  } catch { fatalError("\(error)") }
case "pages":
  let size = Int(arguments.count > 2 ? arguments[2] : "")
  guard let size, crl_instruments_take_page_for(size * 1024) != 0 else { exit(2) }
  let workers = (0..<40).map { makeWorker("paged \($0)") }
  say("ready")
  while true {
    for worker in workers { worker.runLoop.perform { usleep(100) } }
    usleep(20_000)
  }
default: exit(2)
}
exit(0)
