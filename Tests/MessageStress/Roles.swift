// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopMessages
import Synchronization

let portName = "stress"

/// Exits if the director has exited.
func endWithDirector(_ director: pid_t) { if getppid() != director { exit(2) } }

/// Receives messages until the process is killed.
func receive(in directory: String, count: Int) {
  let director = getppid()
  Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { _ in endWithDirector(director) }
  let ledger = Ledger(at: directory + "/ledger", count: count)
  var port: MessagePort.Local?
  while port == nil {
    do throws(MessagePortError) {
      port = try MessagePort.Local(name: portName, directory: .init(path: directory)) { request in
        let message = number(request.bytes)
        guard message < ledger.count else { fatalError("message \(message) was never sent") }
        ledger.deliver(message)
        for descriptor in request.descriptors { _ = descriptor.number }
        // Passes a descriptor now and then, which the sender closes.
        let passes = message % 1000 == 0
        let passed = passes ? (try? MessagePort.Descriptor(duplicating: 0)).map { [$0] } ?? [] : []
        if message % 256 == 0 { ledger.noteDescriptors(first: .receiverFirst, most: .receiverMost) }
        return request.expectsReply ? MessagePort.Reply(request.bytes, descriptors: passed) : nil
      }
    } catch {
      // The killed receiver has not released the name yet.
      guard case .nameInUse = error else { fatalError("\(error)") }
      endWithDirector(director)
      usleep(200)
    }
  }
  guard let port else { return }
  do { try RunLoop.current.add(port, forMode: .default) } catch { fatalError("\(error)") }
  RunLoop.current.run()
}

/// Sends every message that has not been tried yet, and returns.
func send(in directory: String, count: Int) {
  let ledger = Ledger(at: directory + "/ledger", count: count)
  let director = getppid()
  var next = 0
  while next < count, ledger.fate(next) != .none { next += 1 }
  while next < count {
    let reports = Reports()
    let remote: MessagePort.Remote
    do throws(MessagePortError) {
      remote = try MessagePort.Remote(
        name: portName, directory: .init(path: directory),
        undelivered: { lost in
          ledger.set(.reported, of: Int(lost.id))
          reports.count.wrappingAdd(1, ordering: .releasing)
        })
    } catch {
      endWithDirector(director)
      switch error {
      case .noSuchPort, .peerClosed: usleep(200)
      default: fatalError("\(error)")
      }
      continue
    }
    ledger.noteDescriptors(first: .senderFirst, most: .senderMost)
    ledger.write(.connections, ledger.note(.connections) + 1)
    while next < count, remote.isValid {
      let start = next
      let end = min(count, next + 500)
      while next < end, remote.isValid {
        ledger.set(.tried, of: next)
        attempt(next, to: remote, ledger)
        next += 1
      }
      // Messages without a report are confirmed then.
      guard (try? remote.awaitConfirmations()) != nil else { break }
      for message in start..<next where ledger.fate(message) == .tried { ledger.set(.confirmed, of: message) }
    }
    remote.invalidate()
    // The package's own thread may be about to deliver a report.
    while reports.count.load(ordering: .acquiring) < remote.statistics.undeliveredCount { usleep(100) }
    ledger.noteDescriptors(first: .senderFirst, most: .senderMost)
  }
  ledger.write(.done, 1)
}

/// Sends a message, which may expect a reply, be long, or carry a descriptor.
private func attempt(_ message: Int, to remote: MessagePort.Remote, _ ledger: Ledger) {
  let length = message % 977 == 0 ? 100_000 : 8
  let bytes = payload(message, length)
  let descriptors: [Int32] = message % 100 == 0 ? [0] : []
  do throws(MessagePortError) {
    if message % 8 == 0 {
      let reply = try remote.send(
        id: Int32(message), bytes: bytes, descriptors: descriptors, receiveTimeout: .seconds(600))
      guard reply?.bytes == bytes else { fatalError("a wrong reply to \(message)") }
      ledger.set(.confirmed, of: message)
    } else {
      try remote.send(id: Int32(message), bytes: bytes, descriptors: descriptors)
    }
  } catch {
    ledger.set(.reported, of: message)
    switch error {
    case .peerClosed, .invalid: break
    default: fatalError("\(error)")
    }
  }
}

func payload(_ message: Int, _ length: Int) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: length)
  for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: message >> (8 * index)) }
  return bytes
}

func number(_ bytes: [UInt8]) -> Int {
  guard bytes.count >= 8 else { fatalError("half a message") }
  var number = 0
  for index in 0..<8 { number |= Int(bytes[index]) << (8 * index) }
  return number
}

/// A count of reports.
final class Reports: Sendable {
  let count = Atomic<Int>(0)
}
