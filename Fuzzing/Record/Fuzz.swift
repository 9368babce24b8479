// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Foundation
import Glibc
import RunLoopCore
import RunLoopInstruments

@testable import RunLoopToolKit

/// The entry point for libFuzzer.
///
/// The bytes are changes to a record of this process: offsets of four bytes, each followed by a length byte and that
/// many bytes. For any contents, each command that reads records must print a result or one sentence with the reason.
/// The first byte selects the command, and whether the file is truncated.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = UnsafeBufferPointer(start: start, count: count)[...]
  guard let choice = bytes.popFirst() else { return 0 }
  let record = Record.shared
  record.write(bytes, isCut: choice & 0x80 != 0)
  let path = record.path
  switch choice & 7 {
  case 0: run("postmortem", path, "--json")
  case 1: run("postmortem", path)
  case 2: run("trace", "--from", path, "--output", path + ".pftrace")
  case 3: run("trace", "--from", path, "--output", path + ".html", "--json")
  case 4: run("postmortem", path, "--thread", "fuzz", "--last", "3")
  case 5: MainActor.assumeIsolated { readTop() }
  // Observing a busy loop takes a second.
  default: if choice == 6 { run("ps", "\(getpid())", "--json") } else { readAll() }
  }
  return 0
}

private func run(_ arguments: String...) {
  let output = Output(print: { _ in }, complain: { precondition(!$0.isEmpty && $0.count < 2000) })
  let status = RunLoopCommand.status(of: arguments, output: output)
  precondition(status == 0 || status == 1, "\(arguments) ends with \(status)")
}

/// Reads the data of `runloop top`.
@MainActor private func readTop() {
  guard let target = try? TargetProcess(getpid()), let file = try? RecordFile(path: Record.shared.path) else { return }
  let reader = TopReader(target, file)
  for _ in 0..<2 {
    guard let loops = try? reader.read() else { return }
    for loop in loops { _ = reader.lines(of: loop.slot, most: 20) }
  }
}

/// Reads all data of a file.
private func readAll() {
  guard let file = try? RecordFile(path: Record.shared.path) else { return }
  var tails = (0..<file.faceCount).map { RecordTail(slot: $0) }
  for _ in 0..<2 { for slot in tails.indices { _ = tails[slot].read(file) } }
  _ = (file.lostLoops, file.images, file.clock)
}

/// A record of this process, in a separate directory, so that it is found by the process's id.
private final class Record: @unchecked Sendable {
  // Sendable: libFuzzer uses one thread.
  static let shared = Record()

  let path: String
  let directory: String
  private let descriptor: Int32
  private let whole: [UInt8]
  private var changed: [Range<Int>] = []

  init() {
    let holder = Instruments.hold(.record)
    let loop = RunLoopCore.RunLoop.current
    for _ in 0..<50 { loop.perform {} }
    let timer = loop.schedule(in: .zero, repeating: .milliseconds(1)) { _ in loop.perform {} }
    _ = loop.run(mode: .default, for: .milliseconds(20))
    timer.invalidate()
    guard let directory = Instruments.directory, directory.hasPrefix("/dev/shm/") else {
      fatalError("the fuzzer needs RUNLOOP_DIR in memory")
    }
    self.directory = directory
    path = "\(directory)/rings"
    let copy = "\(directory)/copy"
    do { try Instruments.writeRecord(to: copy, last: .seconds(3600)) } catch { fatalError("\(error)") }
    guard let data = FileManager.default.contents(atPath: copy) else { fatalError("there is no copy") }
    unlink(copy)
    whole = Array(data)
    holder.release()
    // From now on this process writes to an unnamed file.
    unlink(path)
    descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    precondition(descriptor >= 0)
    put(0..<whole.count)
    atexit {
      for suffix in ["", ".pftrace", ".html"] { unlink(Record.shared.path + suffix) }
      rmdir(Record.shared.directory)
      rmdir(getenv("RUNLOOP_DIR"))
    }
  }

  private func put(_ range: Range<Int>) {
    let written = whole[range].withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(range.lowerBound)) }
    precondition(written == range.count)
  }

  func write(_ changes: Slice<UnsafeBufferPointer<UInt8>>, isCut: Bool) {
    ftruncate(descriptor, off_t(whole.count))
    for range in changed { put(range) }
    changed = []
    var rest = changes
    while rest.count > 5 {
      let place = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      let length = Int(rest[rest.startIndex + 4])
      let bytes = Array(rest.dropFirst(5).prefix(length))
      rest = rest.dropFirst(5 + length)
      // Usually the beginning, which refers to everything else.
      let limit = place & 3 == 0 ? whole.count : place & 3 == 1 ? 300_000 : 8192
      let start = (place >> 2) % limit
      let end = min(start + bytes.count, whole.count)
      guard end > start else { continue }
      precondition(pwrite(descriptor, bytes, end - start, off_t(start)) == end - start)
      changed.append(start..<end)
    }
    if isCut {
      ftruncate(descriptor, off_t(changed.first?.lowerBound ?? 4096))
      changed.append(0..<whole.count)
    }
  }
}
