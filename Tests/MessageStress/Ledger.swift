// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What has become of each message, in memory that the processes share.
struct Ledger: @unchecked Sendable {
  // Sendable: each byte has one writer at a time: the process that has the message, or counts its descriptors.

  /// What the sender knows of a message; its values only grow.
  enum Fate: UInt8 {
    /// It was never tried.
    case none
    /// It was tried; a sender that is killed leaves it so.
    case tried
    /// The sender was told that it may not have been delivered.
    case reported
    /// The sender was told that it was delivered.
    case confirmed
  }

  /// Numbers beside the messages' bytes.
  enum Note: Int {
    /// The descriptors of a process when it had one connection for the first time, the most ever, and the kills it saw.
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

  /// Notes how many descriptors the process has, not counting those that are about to be closed.
  ///
  /// Another thread closes the descriptors that arrived in messages. One that leaks stays open however long one looks.
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
  guard let directory = opendir("/proc/self/fd") else { return 0 }
  defer { closedir(directory) }
  var count = 0
  while readdir(directory) != nil { count += 1 }
  // Without `.`, `..`, and the directory itself.
  return count - 3
}
