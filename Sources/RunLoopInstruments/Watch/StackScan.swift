// SPDX-License-Identifier: Apache-2.0

/// The return addresses on the stack of a blocked thread, found in a copy of it.
///
/// The kernel reports the stack pointer and the program counter, but not the frame pointer. The chain of frames is
/// therefore found by scanning: it begins at the innermost word from which frame pointers lead to the frame of the
/// loop's run, with a return address after a call instruction in each frame. Words further in belong to functions
/// without frame pointers, such as the C library's; those whose call leads to the next inner function are used. A
/// frame pointer chain skips the caller of such a function, whose return address is then found at the distance from
/// its frame that the beginning of its code implies.
package struct StackScan {
  /// The addresses, innermost first.
  package let addresses: [UInt64]
  /// Whether the addresses reach the frame of the run.
  package let reachesRun: Bool

  /// The maximum number of addresses.
  static let most = 128
  /// The maximum length of a function, and thus of the offset of a return address in it.
  private static let longestFunction: UInt64 = 1 << 16

  /// Scans a stack.
  ///
  /// - Parameters:
  ///   - words: The words of the stack, starting at the stack pointer.
  ///   - stackPointer: The address of the first word.
  ///   - limit: An address in the frame of the run, or zero to scan the whole stack.
  /// - Complexity: O(*n*), where *n* is the number of words.
  package init(
    programCounter: UInt64, stackPointer: UInt64, words: [UInt64], limit: UInt64, in memory: some ReadableMemory
  ) {
    var scanner = Scanner(stackPointer: stackPointer, words: words, limit: limit, memory: memory)
    var chain = scanner.chain()[...]
    var inner = scanner.inner(before: chain.first ?? words.count, from: programCounter)
    // Remnants of an earlier call may also lead to the run, but then their call usually led to another function than
    // the next inner one. In that case, uses the first frame whose call is known to match, if there is one.
    if let first = chain.first, !scanner.isLinked(scanner.code(first + 1), inner.linked.last ?? programCounter) {
      for (index, place) in chain.enumerated().dropFirst() {
        let longer = scanner.inner(before: place, from: programCounter)
        let callee = longer.linked.last ?? programCounter
        let address = scanner.code(place + 1)
        guard scanner.call(address)?.target != nil, scanner.isLinked(address, callee) else {
          continue
        }
        chain = chain.dropFirst(index)
        inner = longer
        break
      }
    }
    var found = [programCounter] + (inner.linked.isEmpty && chain.isEmpty ? inner.all : inner.linked)
    var last = inner.last
    for place in chain {
      if let owner = scanner.owner(ofFrame: place, after: last, callee: found[found.count - 1]) { found.append(owner) }
      found.append(scanner.code(place + 1))
      last = place + 1
    }
    addresses = Array(found.prefix(StackScan.most))
    reachesRun = limit > 0 && !chain.isEmpty && found.count <= StackScan.most
  }

  /// The state of a scan.
  private struct Scanner<Memory: ReadableMemory> {
    let stackPointer: UInt64
    let words: [UInt64]
    let limit: UInt64
    let memory: Memory
    private var calls: [UInt64: CallInstruction?] = [:]

    init(stackPointer: UInt64, words: [UInt64], limit: UInt64, memory: Memory) {
      self.stackPointer = stackPointer
      self.words = words
      self.limit = limit
      self.memory = memory
    }

    /// The word at an index as a code address.
    func code(_ place: Int) -> UInt64 { words[place] & memory.codeAddressMask }

    mutating func call(_ address: UInt64) -> CallInstruction? {
      if let known = calls[address] { return known }
      let found = CallInstruction(before: address, in: memory)
      calls[address] = found
      return found
    }

    /// The indices of the frame pointers, from the innermost to the run's.
    mutating func chain() -> [Int] {
      let end = stackPointer &+ UInt64(8 * words.count)
      // For each word, the index of the next frame if a chain leads from it to the run, with `Int.max` at the end.
      var next = [Int](repeating: -1, count: words.count)
      var first: Int?
      var place = words.count - 2
      while place >= 0 {
        let frame = words[place]
        let own = stackPointer &+ UInt64(8 * place)
        if leads(frame, from: own, end, next), call(code(place + 1)) != nil {
          next[place] = isEnd(frame, end) ? .max : Int((frame - stackPointer) / 8)
          first = place
        }
        place -= 1
      }
      var chain: [Int] = []
      var step = first ?? .max
      while step < words.count, chain.count < StackScan.most {
        chain.append(step)
        step = next[step]
      }
      return chain
    }

    private func isEnd(_ frame: UInt64, _ end: UInt64) -> Bool {
      limit > 0 ? frame >= min(limit, end) : frame == 0 || frame >= end
    }

    private func leads(_ frame: UInt64, from own: UInt64, _ end: UInt64, _ next: [Int]) -> Bool {
      if limit == 0, frame == 0 { return true }
      // Frames beyond the run's are not examined. They must be near, because both are on the same stack.
      guard frame > own, frame & 7 == 0, frame < end &+ 4 << 20 else { return false }
      return isEnd(frame, end) || next[Int((frame - stackPointer) / 8)] >= 0
    }

    /// Whether the call before a return address may have led to an inner function.
    mutating func isLinked(_ address: UInt64, _ callee: UInt64) -> Bool {
      guard let target = call(address)?.target else { return true }
      guard let start = memory.functionStart(of: callee) else {
        return target <= callee && callee - target < StackScan.longestFunction
      }
      return start == target || TailCall.leads(from: target, to: start, in: memory)
    }

    /// Finds the skipped return address in the function that a frame belongs to, or nil if none was skipped.
    mutating func owner(ofFrame place: Int, after last: Int, callee: UInt64) -> UInt64? {
      // If the start of the callee is unknown, assumes that only the call itself pushed a word.
      var distance = 1
      if let start = memory.functionStart(of: callee) {
        if FrameLayout(of: start, in: memory) != nil { return nil }
        guard let words = FrameLayout.wordsToReturnAddress(of: start, in: memory) else { return nil }
        distance = words
      }
      for index in (last + 1)..<max(last + 1, place) {
        let word = code(index)
        guard call(word) != nil, let start = memory.functionStart(of: word),
          let frame = FrameLayout(of: start, in: memory), index + distance + frame.words == place,
          isLinked(code(place + 1), word)
        else { continue }
        return word
      }
      return nil
    }

    /// Finds the return addresses of functions without frame pointers: all of them, those whose call leads to the next
    /// inner function, and the index of the last of these.
    mutating func inner(
      before end: Int, from programCounter: UInt64
    ) -> (linked: [UInt64], all: [UInt64], last: Int) {
      var linked: [UInt64] = []
      var all: [UInt64] = []
      var last = -1
      var callee = programCounter
      for place in 0..<min(end, 512) {
        let word = code(place)
        guard let call = call(word) else { continue }
        all.append(word)
        guard call.target != nil, isLinked(word, callee) else { continue }
        linked.append(word)
        callee = word
        last = place
      }
      return (linked, all, last)
    }
  }
}
