// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The inbox", .timeLimit(.minutes(20)))
struct InboxTests {
  @Test("the inbox agrees with an array under random appends and drains", arguments: 1...10)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let inbox = Inbox()
    let reader = Reader()
    var model: [Int] = []
    for number in 0..<1000 {
      if random.oneIn(10) {
        #expect(reader.take(from: inbox) == model)
        #expect(!inbox.mayHaveEntries)
        model = []
      } else {
        #expect(reader.post(number, of: random.below(5), to: inbox))
        #expect(inbox.mayHaveEntries)
        model.append(number)
      }
      inbox.checkInvariants()
    }
  }

  @Test("a closed inbox accepts nothing more, and hands out its contents", .rule(.m21))
  func closed() {
    let inbox = Inbox()
    let reader = Reader()
    #expect(reader.post(1, of: 0, to: inbox))
    inbox.rejectAll()
    #expect(!reader.post(2, of: 0, to: inbox))
    #expect(reader.take(from: inbox) == [1])
    #expect(reader.take(from: inbox) == [])
    inbox.checkInvariants()
  }

  @Test("a block that is rejected is released at once", .rule(.m21))
  func rejected() {
    let log = Log()
    let inbox = Inbox()
    inbox.rejectAll()
    let isTaken = { [token = Token(log)] in inbox.append(inDefaultMode: Block { token.touch() }) }()
    #expect(!isTaken)
    #expect(log.text == "released")
  }

  @Test("with four producers nothing is lost, and the order of each is kept", .rule(.r53, .m3))
  func producers() {
    let inbox = Inbox()
    let reader = Reader()
    let count = 5000
    let threads = (0..<4).map { producer in
      startThread {
        for number in 0..<count {
          precondition(reader.post(producer * count + number, of: number % 5, to: inbox), "the inbox is open")
        }
      }
    }
    var next = [0, 0, 0, 0]
    var total = 0
    while total < 4 * count {
      for entry in reader.take(from: inbox) {
        #expect(entry % count == next[entry / count])
        next[entry / count] += 1
        total += 1
      }
    }
    for thread in threads { thread.result() }
    #expect(next == [count, count, count, count])
    #expect(reader.take(from: inbox) == [])
    inbox.checkInvariants()
  }

  @Test("a post that races with the closing is either taken or rejected", .rule(.m14, .m21))
  func racingClose() {
    for _ in 0..<20 {
      let inbox = Inbox()
      let reader = Reader()
      let threads = (0..<3).map { _ in
        startThread {
          var taken = 0
          while taken < 1000, reader.post(0, of: 0, to: inbox) { taken += 1 }
          return taken
        }
      }
      var seen = 0
      while seen < 100 { seen += reader.take(from: inbox).count }
      inbox.rejectAll()
      seen += reader.take(from: inbox).count
      #expect(threads.map { $0.result() }.reduce(0, +) == seen)
    }
  }
}

/// Creates numbered entries on any thread, and reads the numbers from an inbox on one thread.
private final class Reader: @unchecked Sendable {
  // Sendable: only the reading thread runs blocks and thus accesses the number.
  private static let modes = [ModeState("first"), ModeState("second")]
  private var number = 0

  func post(_ number: Int, of kind: Int, to inbox: Inbox) -> Bool {
    let block = Block { self.number = number }
    return switch kind {
    case 0: inbox.append(inDefaultMode: block)
    case 1: inbox.append(.inCommonModes(block))
    case 2: inbox.append(.inMode(Reader.modes[number % 2], block))
    case 3:
      inbox.append(block, inModeAsBefore: "first", site: 0) == nil || inbox.append(.inMode(Reader.modes[0], block))
    default: inbox.append(.inModes(SharedBlock(block, modes: [], isForCommonModes: false)))
    }
  }

  /// Takes the entries of an inbox, ordered by sequence number.
  func take(from inbox: Inbox) -> [Int] {
    var arrived = Arrivals()
    inbox.drain(into: &arrived)
    var entries: [BlockQueue.Entry] = []
    while !arrived.inDefaultMode.isEmpty { entries.append(arrived.inDefaultMode.takeFirst()) }
    while !arrived.inMode.isEmpty { entries.append(arrived.inMode.takeFirst()) }
    while !arrived.jobs.isEmpty { entries.append(arrived.jobs.takeFirst()) }
    while !arrived.addressed.isEmpty {
      let addressed = arrived.addressed.takeFirst()
      switch addressed.block {
      case .inMode(_, let block), .inCommonModes(let block):
        entries.append(.init(sequence: addressed.sequence, work: .single(block)))
      case .inModes(let shared): entries.append(.init(sequence: addressed.sequence, work: .shared(shared)))
      }
    }
    return entries.sorted { $0.sequence < $1.sequence }.map { entry in
      switch entry.work {
      case .single(let block): block.body()
      case .shared(let shared): shared.take()?.body()
      case .job: preconditionFailure("no job was posted")
      }
      return number
    }
  }
}
