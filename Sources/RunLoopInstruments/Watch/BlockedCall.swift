// SPDX-License-Identifier: Apache-2.0

/// The system call that a thread is blocked in.
public struct BlockedCall: Sendable, Codable, Hashable {
  /// The call's name.
  public let call: String
  /// The object of the call, such as `5 pipe`; nil if nothing is known.
  public let on: String?

  /// - Parameters:
  ///   - call: The call's name.
  ///   - on: The object of the call.
  public init(call: String, on: String? = nil) {
    self.call = call
    self.on = on
  }
}

/// What a thread waits for, as its registers, its memory and the kernel's files say.
package struct ThreadWait {
  package let blockedIn: BlockedCall?
  /// The thread that it waits for.
  package let thread: Int32?

  /// - Parameter awaited: The thread whose work it is known to wait for; zero: none is known.
  package init(of thread: Int32, _ registers: ThreadRegisters, awaited: Int32, in memory: ProcessMemory) {
    guard registers.call >= 0 else {
      (blockedIn, self.thread) = (nil, nil)
      return
    }
    let name = SystemCallNames.name(registers.call)
    let arguments = registers.arguments
    if name == "futex", arguments.count >= 3 {
      let word = FutexWord(arguments, of: thread, in: memory)
      let other = word.owner ?? (awaited == 0 ? nil : awaited)
      self.thread = other == thread ? nil : other
      blockedIn = BlockedCall(call: name, on: word.owner == nil && awaited != 0 ? "the work of a thread" : word.text)
      return
    }
    self.thread = nil
    var on: String?
    if SystemCallNames.ofDescriptors.contains(name), let first = arguments.first {
      on = ThreadWait.descriptor(Int32(truncatingIfNeeded: first), of: memory.process)
    } else if name == "poll" || name == "ppoll", arguments.count >= 2 {
      let count = Int(min(arguments[1], 4))
      let entries = memory.bytes(at: arguments[0], count: 8 * count)
      let numbers = stride(from: 0, to: entries.count - 7, by: 8).map {
        Int32(truncatingIfNeeded: entries.number($0, 4))
      }
      let texts = numbers.map { ThreadWait.descriptor($0, of: memory.process) }
      on = texts.isEmpty ? nil : texts.joined(separator: ", ") + (arguments[1] > 4 ? ", …" : "")
    } else if name == "wait4", let first = arguments.first, Int32(truncatingIfNeeded: first) > 0 {
      on = "process \(first)"
    }
    blockedIn = BlockedCall(call: name, on: on)
  }

  /// A descriptor's number, and what it is.
  package static func descriptor(_ number: Int32, of process: Int32) -> String {
    guard number >= 0, let link = ProcFile.link("/proc/\(process)/fd/\(number)") else { return "\(number)" }
    // A pipe and a socket have numbers, which say nothing; others are in brackets.
    if link.hasPrefix("anon_inode:") { return "\(number) \(link.dropFirst(11).filter { $0 != "[" && $0 != "]" })" }
    if !link.hasPrefix("/"), let colon = link.firstIndex(of: ":") { return "\(number) \(link[..<colon])" }
    return "\(number) \(link)"
  }
}

/// A word in memory that a thread waits for, and who has it.
private struct FutexWord {
  let owner: Int32?
  let text: String

  init(_ arguments: [UInt64], of thread: Int32, in memory: ProcessMemory) {
    let (address, operation) = (arguments[0], arguments[1] & 0x7f)
    let expected = UInt32(truncatingIfNeeded: arguments[2])
    let bytes = memory.bytes(at: address, count: 12)
    let word = bytes.count >= 4 ? UInt32(truncatingIfNeeded: bytes.number(0, 4)) : 0
    let second = bytes.count >= 12 ? Int32(truncatingIfNeeded: bytes.number(8, 4)) : 0
    func other(_ number: UInt32) -> Int32? {
      // The kernel's own mark of an owner leaves thirty bits for the thread's number.
      let number = Int32(bitPattern: number & 0x3fff_ffff)
      guard number > 2, number != thread else { return nil }
      return ProcFile.link("/proc/\(memory.process)/task/\(number)/ns/pid") == nil ? nil : number
    }
    let place = "0x\(String(address, radix: 16))"
    switch operation {
    case 6, 13:
      // A lock of the kernel's kind has its owner in the word.
      (owner, text) = (other(word), "lock \(place)")
    case 0, 9:
      if expected == 2, word == 2, let found = other(UInt32(bitPattern: second)) {
        // A mutex of the C library: locked, somebody waits, and the owner two words on.
        (owner, text) = (found, "lock \(place)")
      } else if word == expected, let found = other(word) {
        // The number of a thread is cleared when it ends; a lock of dispatch's holds its owner's.
        (owner, text) = (found, arguments[1] & 128 == 0 ? "end of thread \(found)" : "lock \(place)")
      } else if word == expected, let found = FutexWord.thread(around: address, in: memory).flatMap(other) {
        (owner, text) = (found, "end of thread \(found)")
      } else {
        (owner, text) = (nil, "word \(place)")
      }
    default: (owner, text) = (nil, "word \(place)")
    }
  }

  /// The number of the thread whose record in the C library has a word; nil if the word is in none.
  ///
  /// In glibc 2.43 a join waits for a state beside the number. On x86-64 such a record begins with its own address,
  /// which is repeated in its third word, and has the number at 720.
  private static func thread(around address: UInt64, in memory: ProcessMemory) -> UInt32? {
    #if arch(x86_64)
      let (length, alignment, number) = (2048, 64, 720)
      let last = address & ~UInt64(alignment - 1)
      guard last > UInt64(length) else { return nil }
      let first = last - UInt64(length)
      let bytes = memory.bytes(at: first, count: length + alignment)
      for start in stride(from: bytes.count - alignment, through: 0, by: -alignment) {
        let own = first + UInt64(start)
        guard bytes.number(start, 8) == own, bytes.number(start + 16, 8) == own else { continue }
        let field = memory.bytes(at: own + UInt64(number), count: 4)
        return field.count == 4 ? UInt32(truncatingIfNeeded: field.number(0, 4)) : nil
      }
    #endif
    return nil
  }
}
