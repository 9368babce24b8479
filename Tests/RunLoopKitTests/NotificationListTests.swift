// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import Testing
import TestSupport

@testable import RunLoopFoundation

@Suite("The list of queued notifications")
struct NotificationListTests {
  private static let outlets = [Outlet(NotificationCenter()), Outlet(NotificationCenter())]
  private static let senders = [Plain(), Plain(), Plain()]

  private final class Plain: Sendable {}

  /// Creates an entry whose name, sender and queue follow from its number.
  private func entry(_ sequence: UInt64, _ modes: [RunLoop.Mode]) -> NotificationList.Entry {
    NotificationList.Entry(
      sequence: sequence, notification: .named("\(sequence % 5)", from: Self.senders[Int(sequence % 3)]), modes: modes,
      outlet: Self.outlets[Int(sequence % 2)], origin: .unknown)
  }

  @Test("an entry is removed once, by number and modes, and keeps the names of its modes until then")
  func takesOnce() {
    var list = NotificationList()
    list.append(entry(3, ["a"]))
    list.append(entry(5, ["a", "b", "a"]))
    list.append(entry(9, [.common]))
    #expect(list.names("a") && list.names("b") && list.names(.common) && !list.names(.default))
    #expect(list.takeFirst(after: 3, through: 4, for: "a", isCommon: true) == nil)
    #expect(list.takeFirst(after: 0, through: 9, for: "b", isCommon: false)?.sequence == 5)
    #expect(list.names("a") && !list.names("b"))
    #expect(list.takeFirst(after: 3, through: 9, for: "a", isCommon: false) == nil)
    #expect(list.isWaiting(for: "x", isCommon: true) && !list.isWaiting(for: "x", isCommon: false))
    #expect(list.takeFirst(after: 0, through: 9, for: "x", isCommon: true)?.sequence == 9)
    #expect(list.takeFirst(after: 0, through: 9, for: "a", isCommon: true)?.sequence == 3)
    #expect(list.count == 0 && !list.names("a") && !list.isWaiting(for: "a", isCommon: true))
  }

  @Test("a notification list behaves like an array under random changes", arguments: [1, 2, 3, 4] as [UInt64])
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var list = NotificationList()
    var model: [(sequence: UInt64, modes: [RunLoop.Mode])] = []
    let names: [RunLoop.Mode] = ["a", "b", "c", .common]
    for sequence in 1...4000 as ClosedRange<UInt64> {
      switch Int.random(in: 0..<10, using: &random) {
      case 0...5:
        let modes = (0..<Int.random(in: 1...3, using: &random)).compactMap { _ in names.randomElement(using: &random) }
        list.append(entry(sequence, modes))
        model.append((sequence, modes))
      case 6, 7, 8:
        let (mode, isCommon) = (names[Int.random(in: 0..<3, using: &random)], Bool.random(using: &random))
        let after = UInt64.random(in: 0...sequence, using: &random) / 2
        let through = UInt64.random(in: after...sequence, using: &random)
        let index = model.firstIndex {
          after < $0.sequence && $0.sequence <= through
            && ($0.modes.contains(mode) || (isCommon && $0.modes.contains(.common)))
        }
        let taken = list.takeFirst(after: after, through: through, for: mode, isCommon: isCommon)
        #expect(taken?.sequence == index.map { model[$0].sequence })
        if let index { model.remove(at: index) }
      default:
        let kind = UInt64.random(in: 0..<30, using: &random)
        let (byName, bySender) = (Bool.random(using: &random), Bool.random(using: &random))
        let isMeant = { (sequence: UInt64) in
          sequence % 2 == kind % 2 && (!byName || sequence % 5 == kind % 5) && (!bySender || sequence % 3 == kind % 3)
        }
        let criterion = NotificationList.Criterion(
          outlet: Self.outlets[Int(kind % 2)], sender: bySender ? Sender(Self.senders[Int(kind % 3)]) : nil,
          name: byName ? Notification.Name("\(kind % 5)") : nil)
        #expect(list.takeAll(criterion).map(\.sequence) == model.map(\.sequence).filter(isMeant))
        model.removeAll { isMeant($0.sequence) }
      }
      #expect(list.count == model.count)
      for name in names { #expect(list.names(name) == model.contains { $0.modes.contains(name) }) }
    }
    #expect(list.takeAll(.init()).map(\.sequence) == model.map(\.sequence))
  }

  @Test("senders match if they are the same object, or both nil")
  func senders() {
    let (one, other) = (Plain(), NSObject())
    #expect(Sender(one).isSame(as: Sender(one)) && Sender(other).isSame(as: Sender(other)))
    #expect(Sender(Optional(one) as Any).isSame(as: Sender(one)))
    #expect(Sender(nil).isSame(as: Sender(Plain?.none as Any)))
    #expect(!Sender(one).isSame(as: Sender(other)) && !Sender(one).isSame(as: Sender(nil)))
    #expect(!Sender(1).isSame(as: Sender(1)) && !Sender("a").isSame(as: Sender("a")))
    withExtendedLifetime((one, other)) {}
  }
}
