// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import CRunLoopSystem
import CRunLoopToolKit
package import RunLoopInstruments
import RunLoopLibC

/// The reason why a process's records cannot be read, as one sentence.
package struct RecordError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// The records of a running or ended process.
///
/// The file is opened without following links, and accessed through its descriptor. Must be used on a single thread.
package final class RecordFile {
  private let board: UnsafeMutablePointer<crl_board>
  package let path: String
  private let size: Int
  /// Accesses the memory of a process without a file, or nil if a file is mapped.
  private let remote: RemoteRecords?
  private let isWritable: Bool
  /// Maps thread IDs of a process in another namespace to IDs here, or nil if they are the same.
  var numbers: ThreadNumbers?
  /// The owner of the records.
  ///
  /// Files that the records name are read with this user's rights.
  package let owner: UInt32

  /// Maps a file.
  ///
  /// - Parameters:
  ///   - descriptor: The file, which the caller closes.
  ///   - isWritable: Whether to map it for holding a level. The default is `false`.
  package init(descriptor: Int32, path: String, isWritable: Bool = false) throws(RecordError) {
    self.path = path
    self.isWritable = isWritable
    remote = nil
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw RecordError("\(path) is no file")
    }
    guard status.st_size >= MemoryLayout<crl_header>.size else { throw RecordError("\(path) holds no records") }
    owner = status.st_uid
    size = Int(CRL_BOARD_SIZE)
    let protection = isWritable ? PROT_READ | PROT_WRITE : PROT_READ
    guard let memory = mmap(nil, size, protection, MAP_SHARED, descriptor, 0), memory != MAP_FAILED else {
      throw RecordError("\(path) cannot be mapped: \(String(cString: strerror(errno)))")
    }
    board = memory.assumingMemoryBound(to: crl_board.self)
    let header = RecordFile.load(memory, as: crl_header.self)
    // From here on, `deinit` unmaps the memory even if this throws. It must not be unmapped twice.
    guard RecordLayout.isKept(by: header), Int(status.st_size) >= size else {
      throw RecordError(RecordFile.complaint(of: header, path, Int(status.st_size)))
    }
  }

  /// Opens a file by its path, which must not be a link.
  package convenience init(path: String) throws(RecordError) {
    // Does not block on a pipe.
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw RecordError("\(path) cannot be opened: \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    try self.init(descriptor: descriptor, path: path)
  }

  /// Copies the records of a process without a file.
  package init(_ remote: RemoteRecords, owner: UInt32) throws(RecordError) {
    self.owner = owner
    path = "the memory of process \(remote.process)"
    self.remote = remote
    isWritable = true
    size = Int(CRL_BOARD_SIZE)
    let protection = PROT_READ | PROT_WRITE
    guard let memory = mmap(nil, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      memory != MAP_FAILED
    else { throw RecordError("there is no memory for the records of process \(remote.process)") }
    board = memory.assumingMemoryBound(to: crl_board.self)
    // From here on, `deinit` unmaps the memory even if this throws.
    try remote.copy(into: memory)
    let header = memory.load(as: crl_header.self)
    guard RecordLayout.isKept(by: header) else {
      throw RecordError(RecordFile.complaint(of: header, path, size))
    }
  }

  deinit { munmap(board, size) }

  /// The word with which the process wakes a tool, or nil if this is a copy or read-only.
  var parkingWord: UnsafeMutablePointer<UInt32>? {
    guard remote == nil, isWritable, let offset = MemoryLayout<crl_header>.offset(of: \.parked) else { return nil }
    return (UnsafeMutableRawPointer(board) + offset).assumingMemoryBound(to: UInt32.self)
  }

  /// Rereads the records if this is a copy.
  package func refresh() throws(RecordError) {
    numbers?.refresh()
    try remote?.copy(into: UnsafeMutableRawPointer(board))
  }

  /// Changes the header with a function that returns a negative number on failure, and makes the change visible to the
  /// process.
  ///
  /// - Parameter change: A function that accesses the header within `crlt_guarded`.
  /// - Returns: The result of the function.
  package func changeHeader(_ change: (UnsafeMutableRawPointer) -> Int32) throws(RecordError) -> Int32 {
    let header = UnsafeMutableRawPointer(board)
    let answer = change(header)
    if answer == -EFAULT { throw RecordError("\(path) was cut off while it was read") }
    try remote?.write(header.assumingMemoryBound(to: crl_header.self))
    return answer
  }

  /// Registers the level for release by a fatal signal, and returns the handle for unregistering it.
  func guardLevel() -> Int32 {
    if let remote { return crlt_level_guard(remote.process, remote.base) }
    return crlt_level_guard(0, UInt64(UInt(bitPattern: board)))
  }

  private static func complaint(of header: crl_header, _ path: String, _ size: Int) -> String {
    guard header.magic == CRL_MAGIC else { return "\(path) holds no records of run loops" }
    guard header.version == UInt32(CRL_LAYOUT_VERSION) else {
      return
        "\(path) has the layout \(header.version), and this tool reads \(CRL_LAYOUT_VERSION): use a runloop that is "
        + (header.version > UInt32(CRL_LAYOUT_VERSION) ? "newer" : "older")
    }
    guard RecordLayout.isKept(by: header) else {
      return "\(path) is damaged: its header contradicts the layout \(CRL_LAYOUT_VERSION)"
    }
    return "\(path) is cut off: it has \(size) bytes"
  }
}

// The contents of the file.
extension RecordFile {
  /// The current header.
  package var header: crl_header { RecordFile.load(board, as: crl_header.self) }

  /// Copies a value from a mapped file, or returns zero if the page is missing.
  ///
  /// Direct access to a missing page, in a truncated file or on a full tmpfs, would end the process.
  private static func load<Value: BitwiseCopyable>(_ place: UnsafeRawPointer, as type: Value.Type) -> Value {
    let (size, alignment) = (MemoryLayout<Value>.size, MemoryLayout<Value>.alignment)
    return withUnsafeTemporaryAllocation(byteCount: size, alignment: alignment) { copy in
      _ = crlt_copy(place, copy.baseAddress, size, 0)
      return copy.load(as: Value.self)
    }
  }

  private func address(_ offset: Int) -> UnsafeRawPointer { UnsafeRawPointer(board) + offset }

  /// The ID of the process that the records belong to.
  package var process: Int32 { numbers?.outer(header.process) ?? header.process }

  /// Returns the current face of a slot, with its untrusted counts clamped.
  package func face(_ slot: Int) -> crl_face {
    var face = RecordFile.load(address(RecordLayout.faces + slot * MemoryLayout<crl_face>.size), as: crl_face.self)
    face.number = min(face.number, RecordLayout.most)
    face.posted = min(face.posted, RecordLayout.most)
    face.served = min(face.served, RecordLayout.most)
    face.waits = min(face.waits, RecordLayout.most)
    face.sleeps = min(face.sleeps, RecordLayout.most)
    if let numbers {
      face.thread = numbers.outer(face.thread)
      face.awaited = numbers.outer(face.awaited)
    }
    return face
  }

  /// The number of faces that have ever been used.
  package var faceCount: Int { Int(min(header.used_faces, UInt32(CRL_FACES))) }

  /// The number of loops without a face, which cannot be observed.
  package var unseenLoops: Int { Int(min(header.lost_loops, RecordLayout.most)) }

  /// The number of loops that could not record for lack of space.
  package var lostLoops: Int {
    let ringless = (0..<faceCount).count { slot in
      let face = face(slot)
      return face.lost != 0 && face.loop != 0
    }
    return ringless + unseenLoops
  }

  /// Returns the name of the thread's object, or an empty string.
  package func name(_ slot: Int) -> String {
    text(address(RecordLayout.details + slot * MemoryLayout<crl_details>.size), 256)
  }

  /// Returns the timer or descriptor of a slot's loop that was last served late, or nil.
  package func lateService(_ slot: Int) -> LateService? {
    let place = address(RecordLayout.details + slot * MemoryLayout<crl_details>.size)
    return LateService(RecordFile.load(place, as: crl_details.self))
  }

  /// Returns the name of a mode, or nil if it did not fit.
  package func mode(_ index: UInt8) -> String? {
    guard Int(index) < min(Int(header.used_modes), Int(CRL_MODES)) else { return nil }
    return text(address(RecordLayout.modes + Int(index) * MemoryLayout<crl_mode_name>.size), 128)
  }

  /// The programs and libraries that were loaded when the process began to record.
  package var images: [LoadedImage] {
    (0..<min(Int(header.used_images), Int(CRL_IMAGES))).map { index in
      let place = address(RecordLayout.images + index * MemoryLayout<crl_image>.size)
      let image = RecordFile.load(place, as: crl_image.self)
      let identity = withUnsafeBytes(of: image.build_id) { Array($0.prefix(Int(min(image.build_id_length, 20)))) }
      return LoadedImage(base: image.base, end: image.end, buildID: identity, path: text(place + 40, 216))
    }
  }

  private func text(_ place: UnsafeRawPointer, _ capacity: Int) -> String {
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { bytes in
      _ = crlt_copy(place, bytes.baseAddress, capacity, 0)
      return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  /// Returns the ring of a slot, or nil if it has none.
  private func ring(_ slot: Int) -> UnsafeRawPointer? {
    guard slot < Int(CRL_RINGS) else { return nil }
    return address(RecordLayout.rings + slot * Int(CRL_RING_SIZE))
  }

  /// Returns the complete records of a slot, newest first, and the number of inconsistent ones.
  ///
  /// A record whose number changes while it is copied is being written, and is skipped.
  package func records(_ slot: Int) -> (records: [crl_record], torn: Int) {
    guard let ring = ring(slot) else { return ([], 0) }
    var found: [crl_record] = []
    var torn = 0
    for index in 0..<Int(CRL_RECORDS) {
      let place = ring + index * MemoryLayout<crl_record>.size
      var record = crl_record()
      guard crlt_copy(place, &record, MemoryLayout<crl_record>.size, 1) != 0 else { continue }
      let isSound =
        record.number % UInt64(CRL_RECORDS) == UInt64(index) && record.begin != 0 && record.kind > 0
        && record.kind < CRL_KINDS && (record.end == 0 || record.end >= record.begin)
      if isSound { found.append(record) } else { torn += 1 }
    }
    found.sort { $0.number > $1.number }
    return (found, torn)
  }

  /// Returns the record with a number, if it still exists.
  package func record(_ number: UInt64, of slot: Int) -> crl_record? {
    guard number != 0, let ring = ring(slot) else { return nil }
    let place = ring + Int(number % UInt64(CRL_RECORDS)) * MemoryLayout<crl_record>.size
    var record = crl_record()
    let isWhole = crlt_copy(place, &record, MemoryLayout<crl_record>.size, 1) != 0
    return isWhole && record.number == number ? record : nil
  }

  /// Returns the post with a sequence number, if it still exists.
  package func post(_ sequence: UInt64, of slot: Int) -> crl_post? {
    guard sequence != 0, let ring = ring(slot) else { return nil }
    let posts = ring + Int(CRL_RECORDS) * MemoryLayout<crl_record>.size
    let place = posts + Int(sequence % UInt64(CRL_POSTS)) * MemoryLayout<crl_post>.size
    var post = crl_post()
    let isWhole = crlt_copy(place, &post, MemoryLayout<crl_post>.size, 1) != 0
    return isWhole && post.sequence == sequence ? post : nil
  }

  /// The clock that converts the file's ticks to nanoseconds.
  package var clock: RecordClock { RecordClock(header) }
}

/// A program or library of a process.
package struct LoadedImage: Sendable {
  package let base: UInt64
  package let end: UInt64
  package let buildID: [UInt8]
  package let path: String

  package init(base: UInt64, end: UInt64, buildID: [UInt8], path: String) {
    (self.base, self.end, self.buildID, self.path) = (base, end, buildID, path)
  }
}
