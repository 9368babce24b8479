// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopInstruments
import RunLoopLibC

/// A running process that its user or root observes.
package struct TargetProcess: Sendable {
  package let number: Int32
  package let start: UInt64
  package let user: UInt32
  private let program: ProgramIdentity

  /// Finds a process; throws a one-sentence reason if it must not be observed.
  package init(_ number: Int32) throws(RecordError) {
    self.number = number
    var status = stat()
    guard number > 0, stat("/proc/\(number)", &status) == 0 else { throw RecordError("there is no process \(number)") }
    guard let start = TargetProcess.start(of: number) else {
      throw RecordError("process \(number) is defunct: it has ended, and its parent has not noticed yet")
    }
    self.start = start
    // Read before anything is opened or requested, which could make the process execute another program.
    program = ProgramIdentity(number)
    // In /proc, root owns the files of a process that is not dumpable, whatever its user.
    guard let user = TargetProcess.user(of: number) else { throw RecordError("there is no process \(number)") }
    self.user = user
    guard geteuid() == user || geteuid() == 0 else {
      throw RecordError("process \(number) is another user's (\(user)): only that user and root can look at it")
    }
  }

  /// Returns the effective user of a process.
  private static func user(of number: Int32) -> UInt32? {
    let line = readWhole("/proc/\(number)/status")?.split(separator: "\n").first { $0.hasPrefix("Uid:") }
    let fields = line?.split { $0 == "\t" || $0 == " " } ?? []
    return fields.count > 2 ? UInt32(fields[2]) : nil
  }

  /// The rights with which to open its files.
  package var rights: UserRights { UserRights(of: user) }

  /// Returns the start time of a process in the kernel's units, or nil if there is none or it is a zombie.
  package static func start(of number: Int32) -> UInt64? {
    guard let text = readWhole("/proc/\(number)/stat"), let end = text.lastIndex(of: ")") else { return nil }
    let fields = text[text.index(after: end)...].split(separator: " ")
    guard fields.count > 19, fields[0] != "Z", fields[0] != "X" else { return nil }
    return UInt64(fields[19])
  }

  /// The PID namespace of this process, as stored in headers.
  static var namespace: UInt64 {
    var status = stat()
    return stat("/proc/self/ns/pid", &status) == 0 ? UInt64(status.st_ino) : 0
  }

  /// Whether it is stopped by a signal or a debugger.
  package var isStopped: Bool {
    guard let text = readWhole("/proc/\(number)/stat"), let end = text.lastIndex(of: ")") else { return false }
    return ["T", "t"].contains(text[text.index(after: end)...].split(separator: " ").first)
  }

  /// Whether it still runs the same program; after an exec, its loops are gone.
  package var isAlive: Bool { TargetProcess.start(of: number) == start && program.isSame }

  /// How the process has ended, or `time` while it runs.
  var ending: LookSummary.Ending {
    if isAlive { return .time }
    return TargetProcess.start(of: number) == start ? .executed : .ended
  }

  /// Opens its records, or returns nil if there are none yet.
  ///
  /// - Throws: The problem with existing records, or that the process has ended.
  func recordsIfThere() throws(RecordError) -> RecordFile? {
    let (file, reason, isOfOther) = findRecords()
    if let file { return file }
    if let remote = RemoteRecords(process: number) { return try RecordFile(remote, owner: user) }
    if let reason, !isOfOther { throw reason }
    guard isAlive else { throw RecordError("process \(number) has ended and has made no run loop of RunLoopKit") }
    return nil
  }

  private func environment(_ name: String) -> String? {
    guard let text = readWhole("/proc/\(number)/environ") else { return nil }
    let line = text.split(separator: "\0").last { $0.hasPrefix("\(name)=") }
    return line.map { String($0.dropFirst(name.count + 1)) }
  }

  /// The path to its root directory, or nil if it is this process's.
  private var ownRoot: String? {
    let (own, its) = (TargetProcess.identity("/proc/self/ns/mnt"), TargetProcess.identity("/proc/\(number)/ns/mnt"))
    return own == its ? nil : "/proc/\(number)/root"
  }

  private static func identity(_ path: String) -> UInt64 {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(status.st_ino) : 0
  }

  /// The directories that may contain its file, the most likely first.
  package var directories: [String] {
    var found: [String] = []
    if var given = environment("RUNLOOP_DIR"), !given.isEmpty {
      // A relative path is relative to the directory in which the process was started.
      if !given.hasPrefix("/") { given = "/proc/\(number)/cwd/\(given)" }
      found.append(given)
    }
    if let runtime = environment("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") {
      found.append("\(runtime)/runloop-instruments")
    }
    // A variable that the process itself has set is not visible.
    if let own = RecordDirectory.given { found.append(own) }
    found += RecordDirectory.usual(of: user)
    // A container has its own file tree.
    if let root = ownRoot { found = found.filter { !$0.hasPrefix("/proc/") }.map { root + $0 } + found }
    return found
  }

  /// The programs and libraries that are currently loaded.
  ///
  /// A program or library whose file was replaced is read through the kernel's link to it.
  package var loadedImages: [LoadedImage] {
    let mapped = MappedFile.all(of: number)
    let deleted = mapped.contains(where: \.isDeleted) ? DeletedFiles(of: number, mapped).links : [:]
    var found: [(range: Range<UInt64>, file: MappedFile)] = []
    for file in mapped {
      if let last = found.last, last.file.path == file.path {
        found[found.count - 1].range = last.range.lowerBound..<file.range.upperBound
      } else if file.offset == 0 {
        found.append((file.range, file))
      }
    }
    return found.map { range, file in
      LoadedImage(
        base: range.lowerBound, end: range.upperBound, buildID: [],
        path: file.isDeleted ? deleted[file.name] ?? file.name : file.path)
    }
  }

  /// Its ID in its own PID namespace, after which its records are named.
  private var ownNumber: Int32 { ThreadNumbers.inner(of: "/proc/\(number)/status") ?? number }

  /// The name of its directory in one of ``directories``.
  var recordName: String { "\(ownNumber).\(start)" }

  /// Opens its records.
  package func openRecords() throws(RecordError) -> RecordFile {
    let (file, reason, _) = findRecords()
    if let file { return file }
    if let remote = RemoteRecords(process: number) { return try RecordFile(remote, owner: user) }
    throw reason
      ?? RecordError(
        "process \(number) has no run loop of RunLoopKit, or has not made one yet, or shows nothing of it, as a process "
          + "does that may do more than its caller or is not dumpable")
  }

  /// Finds the file of its records, or the first problem, and whether that concerns a program that the process ran
  /// earlier.
  private func findRecords() -> (file: RecordFile?, reason: RecordError?, isOfOther: Bool) {
    var reason: (error: RecordError, isOfOther: Bool)?
    let rights = rights
    for directory in directories {
      do throws(RecordError) {
        let found = try rights.openingFiles { () throws(RecordError) -> RecordFile? in
          try RecordDirectory.open(directory, recordName, owner: user, isWritable: true)
        }
        guard let found else { continue }
        if ownNumber != number { found.numbers = ThreadNumbers(of: number) }
        // The file is left in place when the process executes another program.
        if mapsRecords { return (found, nil, false) }
        let gone = "process \(number) has executed another program since it made its run loops: they are gone"
        reason = reason ?? (RecordError(gone), true)
      } catch {
        // The process did not trust this directory either, and may have used another.
        reason = reason ?? (error, false)
      }
    }
    return (nil, reason?.error, reason?.isOfOther ?? false)
  }

  /// Whether its memory map contains the records file, or cannot be read.
  private var mapsRecords: Bool {
    guard let maps, !maps.isEmpty else { return true }
    return maps.contains("/\(recordName)/rings")
  }

  private var maps: String? { readWhole("/proc/\(number)/maps") }

  /// Whether its memory map contains its records, in a file or without one.
  private var isSeenToMapRecords: Bool {
    guard let maps else { return false }
    return maps.contains("/\(recordName)/rings") || maps.contains("/memfd:runloop-rings")
  }

  /// The running processes with records that this process may observe.
  ///
  /// They may keep their records in directories that this process does not know, in other PID namespaces, and without a
  /// file, so the memory maps of all wanted processes are read.
  package static func all(where isWanted: (Int32) -> Bool = { _ in true }) -> [Int32] {
    var numbers: Set<Int32> = []
    for directory in RecordDirectory.own {
      for (number, start) in RecordDirectory.processes(in: directory) where TargetProcess.start(of: number) == start {
        if isWanted(number) { numbers.insert(number) }
      }
    }
    for name in ProcFile.names(in: "/proc") {
      guard let number = Int32(name), !numbers.contains(number), isWanted(number),
        let process = try? TargetProcess(number), process.isSeenToMapRecords
      else { continue }
      numbers.insert(number)
    }
    return numbers.sorted()
  }

  /// Returns the kernel's name for one of its threads.
  package func kernelName(ofThread thread: Int32) -> String? {
    readWhole("/proc/\(number)/task/\(thread)/comm").map { String($0.prefix { $0 != "\n" }) }
  }
}

/// The directories of records.
package enum RecordDirectory {
  /// The directory named by the tool's own environment.
  fileprivate static var given: String? {
    guard let given = crl_environment("RUNLOOP_DIR"), given.pointee != 0 else { return nil }
    return String(cString: given)
  }

  /// The directories for records of this user's processes, the most likely first, by the same rule that the processes
  /// use.
  package static var own: [String] {
    var found: [String] = []
    if let given { found.append(given) }
    if let runtime = crl_environment("XDG_RUNTIME_DIR"), runtime.pointee == 47, crl_is_on_tmpfs(runtime) != 0 {
      found.append("\(String(cString: runtime))/runloop-instruments")
    }
    return found + usual(of: geteuid())
  }

  /// Returns the directories for records of a user's processes without a session directory.
  fileprivate static func usual(of user: UInt32) -> [String] {
    let first = "/dev/shm/runloop-\(user)"
    var status = stat()
    let isTaken =
      lstat(first, &status) == 0
      && (status.st_uid != user || status.st_mode & S_IFMT != S_IFDIR || status.st_mode & 0o022 != 0)
    // If another user has taken the name, processes use the directory that the system created.
    return isTaken ? [first, "/run/user/\(user)/runloop-instruments"] : [first]
  }

  /// Opens the records in a subdirectory, or returns nil if there are none.
  ///
  /// Links are not followed, and everything must belong to the owner.
  package static func open(
    _ directory: String, _ name: String, owner: UInt32, isWritable: Bool
  ) throws(RecordError) -> RecordFile? {
    let parent = RunLoopLibC.open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard parent >= 0 else {
      if errno == ENOENT || errno == ENOTDIR && access(directory, F_OK) != 0 { return nil }
      throw RecordError("\(directory) is no directory to trust: \(String(cString: strerror(errno)))")
    }
    defer { close(parent) }
    let place = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard place >= 0 else {
      if errno == ENOENT { return nil }
      throw RecordError("\(directory)/\(name) is no directory to trust: \(String(cString: strerror(errno)))")
    }
    defer { close(place) }
    let path = "\(directory)/\(name)/rings"
    for descriptor in [parent, place] {
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_uid == owner, status.st_mode & 0o022 == 0 else {
        throw RecordError(
          "\(path) is not read, as its directory is not the user's own (\(owner)), or others may write to it")
      }
    }
    let file = openat(place, "rings", (isWritable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw RecordError("\(path) cannot be opened: \(String(cString: strerror(errno)))")
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_uid == owner else {
      throw RecordError("\(path) is not read, as it is not the user's own (\(owner))")
    }
    return try RecordFile(descriptor: file, path: path, isWritable: isWritable)
  }

  /// Returns the processes with entries in a directory, by ID and start time.
  package static func processes(in directory: String) -> [(number: Int32, start: UInt64)] {
    var found: [(number: Int32, start: UInt64)] = []
    for name in ProcFile.names(in: directory) {
      let parts = name.split(separator: ".")
      if parts.count == 2, let number = Int32(parts[0]), let start = UInt64(parts[1]) { found.append((number, start)) }
    }
    return found.sorted { $0 < $1 }
  }

  /// Opens the newest records of an ended process with this ID.
  package static func openDead(_ number: Int32) throws(RecordError) -> RecordFile {
    for directory in own {
      let ended = processes(in: directory).filter { $0.number == number && TargetProcess.start(of: number) != $0.start }
      guard let newest = ended.max(by: { $0.start < $1.start }) else { continue }
      if let file = try open(directory, "\(number).\(newest.start)", owner: geteuid(), isWritable: false) {
        return file
      }
    }
    if TargetProcess.start(of: number) != nil {
      throw RecordError("process \(number) runs still: ask \"runloop ps \(number)\"")
    }
    throw RecordError("process \(number) has left no records in \(own.joined(separator: ", "))")
  }
}
