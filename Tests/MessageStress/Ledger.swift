// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The fate of each message, in memory that the processes share.
struct Ledger: @unchecked Sendable {
  // Sendable: each byte has one writer at a time, the process that has the message or counts its descriptors.

  /// The sender's knowledge of a message, whose value only increases.
  enum Fate: UInt8 {
    /// The message was never sent.
    case none
    /// The sender tried to send the message, and may have been killed then.
    case tried
    /// The sender received a report that the message may not have been delivered.
    case reported
    /// The sender received a confirmation of delivery.
    case confirmed
  }

  /// Numbers that the file stores besides the messages' bytes.
  enum Note: Int {
    /// A process's descriptor count at its first connection and at its peak, and the number of kills it observed.
    case receiverFirst, receiverMost, senderFirst, senderMost, connections, done
  }

  let count: Int
  private let start: UnsafeMutableRawPointer

  init(at path: String, count: Int) {
    let size = 2 * count + 4096
    let file = open(path, O_RDWR | O_CREAT, 0o600)
    guard file >= 0, ftruncate(file, size) == 0,
      let start = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), start != MAP_FAILED
    else { fatalError("the ledger \(path) cannot be mapped") }
    close(file)
    self.count = count
    self.start = start
  }

  func fate(_ message: Int) -> Fate {
    Fate(rawValue: start.load(fromByteOffset: message, as: UInt8.self)) ?? .none
  }

  func set(_ fate: Fate, of message: Int) {
    start.storeBytes(of: fate.rawValue, toByteOffset: message, as: UInt8.self)
  }

  func deliveries(_ message: Int) -> Int { Int(start.load(fromByteOffset: count + message, as: UInt8.self)) }

  func deliver(_ message: Int) {
    let offset = count + message
    start.storeBytes(of: start.load(fromByteOffset: offset, as: UInt8.self) &+ 1, toByteOffset: offset, as: UInt8.self)
  }

  private func offset(_ note: Note) -> Int { (2 * count + 7) / 8 * 8 + note.rawValue * 8 }

  func note(_ note: Note) -> Int { start.load(fromByteOffset: offset(note), as: Int.self) }

  func write(_ note: Note, _ value: Int) { start.storeBytes(of: value, toByteOffset: offset(note), as: Int.self) }

  /// Records the number of the process's descriptors, without those that are about to be closed.
  ///
  /// Another thread closes the descriptors that arrive in messages, so the count is repeated. A leaked descriptor
  /// stays open.
  func noteDescriptors(first: Note, most: Note) {
    var now = openDescriptors()
    for _ in 0..<2000 where note(first) > 0 && now > note(first) + 3 {
      usleep(1000)
      now = openDescriptors()
    }
    if note(first) == 0 { write(first, now) }
    if now > note(most) { write(most, now) }
  }
}

func openDescriptors() -> Int {
  // If there is no descriptor left to open the directory, all are in use.
  guard let directory = opendir("/proc/self/fd") else { return .max }
  defer { closedir(directory) }
  var count = 0
  while readdir(directory) != nil { count += 1 }
  // Excludes `.`, `..`, and the descriptor of the directory itself.
  return count - 3
}
