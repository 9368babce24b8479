// SPDX-License-Identifier: Apache-2.0

// A program's own types, whose names Foundation or RunLoopKit uses too.
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

enum Timer { case short, long }
struct Port: Hashable { var number: UInt16 }
struct Socket {}
struct Thread { var messages: [String] = [] }
final class MessagePort {}
final class Application {}
enum ResidentThread { case home }
struct MainLoop {}

func useOwn() -> Int {
  let (timer, port, thread) = (Timer.short, Port(number: 1), Thread())
  _ = (Socket(), MessagePort(), Application(), ResidentThread.home, MainLoop())
  RunLoop.main.perform {}
  return timer == .long ? Int(port.number) : thread.messages.count
}
