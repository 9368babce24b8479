// SPDX-License-Identifier: Apache-2.0

import CStore
import Glibc

/// The database, used by the thread that has opened it.
final class Store {
  enum Failure: Error, CustomStringConvertible {
    case cannotOpen(String)
    case cannotRead(String, Int32)
    case isMissing(count: Int, of: Int)

    var description: String {
      switch self {
      case .cannotOpen(let file): "\"\(file)\" cannot be opened with \(String(cString: cstore_library()))"
      case .cannotRead(let file, let number): "\"\(file)\" cannot be read: \(String(cString: strerror(number)))"
      case .isMissing(let count, let total): "\(count) of \(total) acknowledged numbers are not in the file"
      }
    }
  }

  private let store: OpaquePointer

  init(file: String) throws(Failure) {
    guard let store = cstore_open_file(file) else { throw .cannotOpen(file) }
    self.store = store
  }

  deinit { _ = cstore_close(store) }

  /// Writes numbers in one transaction; returns false if none of them was written.
  func write(_ numbers: some Sequence<Int32>) -> Bool {
    guard cstore_begin(store) == 0 else { return false }
    for number in numbers where cstore_insert(store, number) != 0 {
      _ = cstore_roll_back(store)
      return false
    }
    if cstore_commit(store) == 0 { return true }
    _ = cstore_roll_back(store)
    return false
  }

  func contains(_ number: Int32) -> Bool { cstore_contains(store, number) == 1 }
}

/// Checks that the acknowledged numbers, one on each line of a file, are in the database.
func verify(file: String, acknowledged: String) throws(Store.Failure) {
  guard let input = fopen(acknowledged, "re") else { throw .cannotRead(acknowledged, errno) }
  defer { fclose(input) }
  let store = try Store(file: file)
  var (total, missing) = (0, 0)
  var number: Int32 = 0
  while withUnsafeMutablePointer(to: &number, { pointer in withVaList([pointer]) { vfscanf(input, "%d", $0) } }) == 1 {
    total += 1
    if !store.contains(number) { missing += 1 }
  }
  guard missing == 0 else { throw .isMissing(count: missing, of: total) }
  say("all \(total) acknowledged numbers are in the file", on: STDOUT_FILENO)
}
