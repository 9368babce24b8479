// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer: each four bytes are an operation on a tree of few watches and names.
///
/// In any order, parents and children must be consistent, nothing may be below itself, a removed directory must be
/// gone with everything below it, and the tree's paths must lead back to their directories.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  var tree = WatchTree(root: 0)
  for index in stride(from: 0, to: bytes.count - 3, by: 4) {
    let (watch, other) = (Int32(bytes[index + 1] % 24), Int32(bytes[index + 2] % 24))
    let name = [bytes[index + 3] % 6]
    switch bytes[index] % 10 {
    case 0, 1, 2:
      let wasBelow = tree.isBelow(other, watch)
      let isPlaced = tree.place(watch, name, under: other)
      precondition(isPlaced == (watch != 0 && tree.contains(other) && !wasBelow), "a place that is wrong")
      if isPlaced { precondition(tree.child(name, of: other) == watch && tree.position(of: watch)?.parent == other) }
    case 3: tree.detach(watch)
    case 4 where watch != 0:
      let below = tree.watches.filter { tree.isBelow($0, watch) }
      let removed = tree.remove(watch)
      precondition(Set(removed) == Set(below), "what is removed is not what was below")
      precondition(removed.allSatisfy { !tree.contains($0) })
    case 5: tree.noteReported(name, in: watch)
    case 6: _ = tree.takeReported(name, in: watch)
    case 7: tree.noteMissed(in: watch)
    case 8: tree.postpone(name, in: watch)
    default: tree.forgetReported()
    }
    precondition(tree.isConsistent && tree.contains(0))
  }
  for watch in tree.watches {
    guard let names = tree.names(to: watch) else { continue }
    precondition(names.reduce(tree.root) { found, name in found.flatMap { tree.child(name, of: $0) } } == watch)
  }
  return 0
}
