// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopSystemEvents

@Suite("The tree of watches")
struct FileChangeTreeTests {
  private func names(_ tree: WatchTree, _ watch: Int32) -> String? {
    tree.names(to: watch).map { $0.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/") }
  }

  @Test("a directory knows its path wherever it is moved")
  func paths() {
    var tree = WatchTree(root: 1)
    func place(_ watch: Int32, _ name: String, _ parent: Int32) -> Bool {
      tree.place(watch, Array(name.utf8), under: parent)
    }
    #expect(place(2, "a", 1) && place(3, "b", 2) && place(4, "c", 1))
    #expect(names(tree, 1) == "" && names(tree, 3) == "a/b")
    tree.detach(2)
    #expect(names(tree, 3) == nil && tree.child(Array("a".utf8), of: 1) == nil)
    #expect(place(2, "z", 4))
    #expect(names(tree, 3) == "c/z/b")
    let removed = tree.remove(4)
    #expect(removed.sorted() == [2, 3, 4])
    #expect(tree.watches == [1])
  }

  @Test("a directory cannot move below itself or an unknown one, and the root stays")
  func rejected() {
    var tree = WatchTree(root: 1)
    func place(_ watch: Int32, _ name: UInt8, _ parent: Int32) -> Bool { tree.place(watch, [name], under: parent) }
    #expect(place(2, 65, 1) && place(3, 66, 2))
    #expect(!place(2, 67, 3))
    #expect(!place(2, 67, 2))
    #expect(!place(1, 67, 3))
    #expect(!place(4, 67, 9))
    #expect(names(tree, 3) == "A/B" && tree.count == 3)
  }

  @Test("any order of events leaves parents and children consistent")
  func random() {
    var tree = WatchTree(root: 0)
    var seed: UInt64 = 7
    func next(_ bound: UInt64) -> Int32 {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int32((seed >> 33) % bound)
    }
    for _ in 0..<20_000 {
      let watch = next(40)
      switch next(6) {
      case 0, 1: _ = tree.place(watch, [UInt8(next(8))], under: next(40))
      case 2: tree.detach(watch)
      case 3 where watch != 0: _ = tree.remove(watch)
      case 4: tree.noteReported([UInt8(next(8))], in: watch)
      default: _ = tree.takeReported([UInt8(next(8))], in: watch)
      }
      if next(500) == 0 { tree.forgetReported() }
      #if DEBUG
        guard tree.isConsistent else {
          Issue.record("parents and children disagree")
          return
        }
      #endif
    }
    #expect(tree.contains(0))
  }

  @Test("entries reported by a scan are consumed once, and the number of remembered names is bounded")
  func reported() {
    var tree = WatchTree(root: 1)
    func take(_ name: [UInt8]) -> Bool { tree.takeReported(name, in: 1) }
    tree.noteReported([65], in: 1)
    #expect(take([65]) && !take([65]))
    for number in 0...WatchTree.reportedLimit { tree.noteReported(Array("\(number)".utf8), in: 1) }
    #expect(take(Array("0".utf8)))
    #expect(!take(Array("\(WatchTree.reportedLimit)".utf8)))
    tree.forgetReported()
    #expect(!take(Array("1".utf8)))
  }
}
