// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The descriptors of a program to be started, and the parent's ends of its pipes.
struct SpawnPlumbing {
  /// The parent's ends of the pipes.
  private(set) var input: OwnedDescriptor?
  private(set) var output: OwnedDescriptor?
  private(set) var error: OwnedDescriptor?
  /// The parent's end of the terminal.
  private(set) var terminal: OwnedDescriptor?
  /// The child's end of the terminal, open until the child is started.
  private(set) var childTerminal: OwnedDescriptor?
  private(set) var from: [Int32] = []
  private(set) var to: [Int32] = []
  /// The child's ends, open until the child is started.
  private var held: [OwnedDescriptor] = []

  mutating func pass(_ descriptor: Int32, as number: Int32) {
    from.append(descriptor)
    to.append(number)
  }

  mutating func connect(_ options: SpawnedProcess.Options) throws(SystemError) {
    input = try connect(STDIN_FILENO, options.standardInput, options)
    output = try connect(STDOUT_FILENO, options.standardOutput, options)
    error = try connect(STDERR_FILENO, options.standardError, options)
  }

  private mutating func connect(
    _ number: Int32, _ redirection: SpawnedProcess.Redirection, _ options: SpawnedProcess.Options
  ) throws(SystemError) -> OwnedDescriptor? {
    switch redirection {
    case .inherited:
      // A descriptor that is closed here is also closed in the child, as is one of this process's own, which is marked
      // to be closed and has the number because the standard stream was closed before.
      let flags = fcntl(number, F_GETFD)
      if flags >= 0, flags & FD_CLOEXEC == 0 { pass(number, as: number) }
    case .descriptor(let descriptor): pass(descriptor, as: number)
    case .standardOutput:
      if let place = to.firstIndex(of: STDOUT_FILENO) { pass(from[place], as: number) }
    case .null:
      let null = OwnedDescriptor(
        try SystemCall.openFile.make {
          let answer = open("/dev/null", O_RDWR | O_CLOEXEC)
          return answer < 0 ? -errno : answer
        })
      held.append(null)
      pass(null.number, as: number)
    case .terminal: return try connectTerminal(number, options)
    case .pipe:
      var ends: [Int32] = [-1, -1]
      _ = try SystemCall.pipe.make { crl_pipe(&ends) }
      let (reading, writing) = (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
      let (ours, theirs) = number == STDIN_FILENO ? (writing, reading) : (reading, writing)
      // Only this end is nonblocking; the child's end blocks, as programs expect.
      _ = try SystemCall.descriptorFlags.make { fcntl(ours.number, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0 }
      held.append(theirs)
      pass(theirs.number, as: number)
      return ours
    }
    return nil
  }

  /// Connects a standard stream to the terminal, and returns the parent's end, which is used for only one output
  /// stream.
  private mutating func connectTerminal(
    _ number: Int32, _ options: SpawnedProcess.Options
  ) throws(SystemError) -> OwnedDescriptor? {
    let isFirst = terminal == nil
    if isFirst { try openTerminal(options.terminalSize) }
    guard let terminal, let childTerminal else { return nil }
    pass(childTerminal.number, as: number)
    // The terminal's error output is read together with the output.
    return number == STDERR_FILENO && output === terminal ? nil : terminal
  }

  private mutating func openTerminal(_ size: SpawnedProcess.TerminalSize) throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    _ = try SystemCall.terminalOpen.make { crl_terminal_open(&ends, size.columns, size.rows) }
    (terminal, childTerminal) = (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
  }
}

/// The command line, environment and working directory of a program to be started.
struct SpawnRequest {
  private let program: SpawnedProcess.Word
  private let paths: [CText]
  private let arguments: [CText]
  private let environment: [CText]?
  private let directory: CText?
  private let options: SpawnedProcess.Options

  init(
    _ program: SpawnedProcess.Word, _ arguments: [SpawnedProcess.Word], _ options: SpawnedProcess.Options
  ) throws(SpawnError) {
    self.arguments = try Self.texts([program] + arguments)
    environment = try options.environmentWords.map { variables throws(SpawnError) in
      if let name = variables.keys.first(where: { $0.bytes.isEmpty || $0.bytes.contains(UInt8(ascii: "=")) }) {
        throw .environmentName(name.string)
      }
      return try Self.texts(variables.map { .init(bytes: $0.key.bytes + [UInt8(ascii: "=")] + $0.value.bytes) })
    }
    directory = try options.directoryWord.map { path throws(SpawnError) in try Self.text(path) }
    guard !program.bytes.isEmpty else { throw .notFound(program: program.string) }
    self.program = program
    self.options = options
    if program.bytes.contains(UInt8(ascii: "/")) {
      paths = try Self.texts([program])
    } else {
      paths = try Self.texts(Environment.programDirectories.map { .init(bytes: Array("\($0)/".utf8) + program.bytes) })
    }
  }

  private static func text(_ word: SpawnedProcess.Word) throws(SpawnError) -> CText {
    do throws(CText.ZeroByte) { return try CText(bytes: word.bytes) } catch { throw .zeroByte(word.string) }
  }

  private static func texts(_ words: [SpawnedProcess.Word]) throws(SpawnError) -> [CText] {
    var texts: [CText] = []
    for word in words { texts.append(try text(word)) }
    return texts
  }

  func start(_ plumbing: SpawnPlumbing) throws(SpawnError) -> (process: Int32, descriptor: OwnedDescriptor) {
    // A child that another thread is starting has a copy of each descriptor until it executes its program. If one of
    // these is open for writing to the file executed here, `execve` fails with `ETXTBSY`, so retry for a while.
    for delay in [1, 2, 4, 8, 16, 32, 64, 128] as [Int] {
      do throws(SpawnError) {
        return try startOnce(plumbing)
      } catch {
        guard case .system(_, let reason) = error, reason.number == ETXTBSY else { throw error }
        var time = timespec(tv_sec: 0, tv_nsec: delay * 1_000_000)
        nanosleep(&time, nil)
      }
    }
    return try startOnce(plumbing)
  }

  private func startOnce(
    _ plumbing: SpawnPlumbing
  ) throws(SpawnError) -> (process: Int32, descriptor: OwnedDescriptor) {
    var descriptor: Int32 = -1
    var failed: Int32 = 0
    do throws(SystemError) {
      let process = try SystemCall.processSpawn.make { call(plumbing, &descriptor, &failed) }
      return (process, OwnedDescriptor(descriptor))
    } catch {
      let calls = ["clone", "dup3", "chdir", "setpgid", "setsid", "execve", "waitid", "ioctl (TIOCSCTTY)"]
      // For `dup3`, the index of the descriptor is in the upper bits.
      let (kind, place) = (Int(failed & 0xff), Int(failed >> 8))
      let call = calls.indices.contains(kind) ? calls[kind] : error.call
      let reason = SystemError(call: call, number: error.number)
      switch call {
      case "execve": throw spawnError(reason)
      case "dup3" where plumbing.from.indices.contains(place):
        throw .descriptor(plumbing.from[place], as: plumbing.to[place], program: program.string, reason)
      case "chdir": throw .directory(options.directory ?? "", program: program.string, reason)
      default: throw .system(program: program.string, reason)
      }
    }
  }

  /// Returns the reason why no file could be executed; the system also reports `ENOENT` for a missing interpreter.
  private func spawnError(_ reason: SystemError) -> SpawnError {
    guard let start = paths.lazy.compactMap({ $0.beginning(in: directory, count: 256) }).first else {
      return reason.number == ENOENT ? .notFound(program: program.string) : .system(program: program.string, reason)
    }
    guard let name = Self.interpreter(start), let path = try? CText(bytes: name),
      // A relative interpreter path is relative to the program's working directory.
      name.first == UInt8(ascii: "/") || directory == nil, path.withPointer({ access($0, X_OK) }) != 0
    else { return .system(program: program.string, reason) }
    return .interpreter(String(decoding: name, as: UTF8.self), program: program.string, reason)
  }

  /// Returns the interpreter in a script's first line, including a trailing carriage return as for the system.
  private static func interpreter(_ start: [UInt8]) -> [UInt8]? {
    guard start.starts(with: Array("#!".utf8)) else { return nil }
    let blanks = Array(" \t".utf8)
    let line = start.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") && $0 != 0 }
    let name = Array(line.drop { blanks.contains($0) }.prefix { !blanks.contains($0) })
    return name.isEmpty ? nil : name
  }

  private func call(_ plumbing: SpawnPlumbing, _ descriptor: inout Int32, _ failed: inout Int32) -> Int32 {
    let (paths, arguments) = (CStrings(paths), CStrings(arguments))
    let environment = environment.map(CStrings.init)
    let directory = directory.map { CStrings([$0]) }
    defer { withExtendedLifetime((paths, arguments, environment, directory, plumbing)) {} }
    return plumbing.from.withUnsafeBufferPointer { from in
      plumbing.to.withUnsafeBufferPointer { to in
        var request = crl_spawn_request()
        request.paths = UnsafePointer(OpaquePointer(paths.pointers))
        request.arguments = UnsafePointer(arguments.pointers)
        request.environment = UnsafePointer(environment?.pointers ?? environ)
        request.directory = UnsafePointer(directory?.pointers[0])
        request.from = from.baseAddress
        request.to = to.baseAddress
        request.count = Int32(from.count)
        // A session leader also leads its process group and cannot create another one.
        let leadsSession = options.leadsSession || plumbing.childTerminal != nil
        request.leads_group = options.leadsProcessGroup && !leadsSession ? 1 : 0
        request.leads_session = leadsSession ? 1 : 0
        request.terminal = plumbing.childTerminal?.number ?? -1
        return crl_spawn(&request, &descriptor, &failed)
      }
    }
  }

  /// C strings in a null-terminated array.
  private final class CStrings {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ strings: [CText]) {
      count = strings.count
      pointers = .allocate(capacity: count + 1)
      for (index, string) in strings.enumerated() { (pointers + index).initialize(to: string.copy()) }
      (pointers + count).initialize(to: nil)
    }

    deinit {
      for index in 0..<count { free(pointers[index]) }
      pointers.deallocate()
    }
  }
}

extension CText {
  /// Returns the first bytes of the file with this path, relative to `directory` or to the working directory, or `nil`
  /// if it cannot be read.
  fileprivate func beginning(in directory: CText?, count: Int) -> [UInt8]? {
    var base: OwnedDescriptor?
    if let directory {
      let number = directory.withPointer { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
      guard number >= 0 else { return nil }
      base = OwnedDescriptor(number)
    }
    let number = withPointer {
      openat(base?.number ?? AT_FDCWD, $0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    }
    guard number >= 0 else { return nil }
    let file = OwnedDescriptor(number)
    defer { withExtendedLifetime((base, file)) {} }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
      length = max(0, read(file.number, buffer.baseAddress, count))
    }
  }
}
