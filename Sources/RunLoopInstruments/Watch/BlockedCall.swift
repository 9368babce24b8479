// SPDX-License-Identifier: Apache-2.0

/// A system call in which a thread is blocked.
public struct BlockedCall: Sendable, Codable, Hashable {
  /// The name of the call.
  public let call: String
  /// A description of the call's object, such as `5 pipe`, or nil if it is unknown.
  public let on: String?

  /// Creates a description of a blocked call.
  ///
  /// - Parameters:
  ///   - call: The name of the call.
  ///   - on: A description of the call's object. The default is `nil`.
  public init(call: String, on: String? = nil) {
    self.call = call
    self.on = on
  }
}

/// The object of a thread's wait, found in its registers, its memory and the kernel's files.
package struct ThreadWait {
  package let blockedIn: BlockedCall?
  /// The thread that it waits for, which is itself if it already owns the lock.
  package let thread: Int32?

  /// - Parameter awaited: The thread whose work it is known to wait for, or zero.
  package init(of thread: Int32, _ registers: ThreadRegisters, awaited: Int32, in memory: ProcessMemory) {
    guard registers.call >= 0 else {
      (blockedIn, self.thread) = (nil, nil)
      return
    }
    let name = SystemCallNames.name(registers.call)
    let arguments = registers.arguments
    if name == "futex", arguments.count >= 3 {
      let word = FutexWord(arguments, of: thread, in: memory)
      // A thread that takes a lock twice waits for itself.
      self.thread = word.owner ?? (awaited == 0 || awaited == thread ? nil : awaited)
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

  /// Returns a descriptor's number and a description of its file.
  package static func descriptor(_ number: Int32, of process: Int32) -> String {
    guard number >= 0, let link = ProcFile.link("/proc/\(process)/fd/\(number)") else { return "\(number)" }
    // Omits the numbers of pipes and sockets, and the brackets of anonymous files.
    if link.hasPrefix("anon_inode:") { return "\(number) \(link.dropFirst(11).filter { $0 != "[" && $0 != "]" })" }
    if !link.hasPrefix("/"), let colon = link.firstIndex(of: ":") { return "\(number) \(link[..<colon])" }
    return "\(number) \(link)"
  }
}

/// A futex word that a thread waits for, and its owner.
private struct FutexWord {
  let owner: Int32?
  let text: String

  init(_ arguments: [UInt64], of thread: Int32, in memory: ProcessMemory) {
    let (address, operation) = (arguments[0], arguments[1] & 0x7f)
    let expected = UInt32(truncatingIfNeeded: arguments[2])
    let bytes = memory.bytes(at: address, count: 12)
    let word = bytes.count >= 4 ? UInt32(truncatingIfNeeded: bytes.number(0, 4)) : 0
    let second = bytes.count >= 12 ? Int32(truncatingIfNeeded: bytes.number(8, 4)) : 0
    func owner(_ number: UInt32) -> Int32? {
      // The kernel reserves two bits of the owner's word, which leaves thirty for the thread's ID.
      let number = Int32(bitPattern: number & 0x3fff_ffff)
      guard number > 2 else { return nil }
      return ProcFile.link("/proc/\(memory.process)/task/\(number)/ns/pid") == nil ? nil : number
    }
    func other(_ number: UInt32) -> Int32? { owner(number).flatMap { $0 == thread ? nil : $0 } }
    let place = "0x\(String(address, radix: 16))"
    switch operation {
    case 6, 13:
      // A priority-inheritance futex contains its owner.
      (self.owner, text) = (owner(word), "lock \(place)")
    case 0, 9:
      if expected == 2, word == 2, let found = owner(UInt32(bitPattern: second)) {
        // A contended mutex of the C library, whose owner is two words further on.
        (self.owner, text) = (found, "lock \(place)")
      } else if word == expected, let found = other(word) {
        // Either the thread ID that the kernel clears when a thread ends, or a Dispatch lock that contains its owner.
        (self.owner, text) = (found, arguments[1] & 128 == 0 ? "end of thread \(found)" : "lock \(place)")
      } else if word == expected, let found = FutexWord.thread(around: address, in: memory).flatMap(other) {
        (self.owner, text) = (found, "end of thread \(found)")
      } else {
        (self.owner, text) = (nil, "word \(place)")
      }
    default: (self.owner, text) = (nil, "word \(place)")
    }
  }

  /// The ID of the thread whose C library descriptor contains a word, or nil.
  ///
  /// In glibc 2.43, a join waits for a state next to the ID. On x86-64, the descriptor begins with its own address,
  /// which is repeated in its third word, and has the ID at offset 720.
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
