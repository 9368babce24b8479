// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import CRunLoopToolKit
import RunLoopCore
import RunLoopLibC

/// `runloop record`: runs a program whose loops record.
struct RecordCommand: ObservingCommand {
  static let name = "record"
  static let usage = """
    usage: runloop record [--output FILE] [--json] -- COMMAND [ARGUMENT ...]

    Runs a program at the level record, and waits for its end. If a signal ends it, its record stays for
    "runloop postmortem --pid PID".

      --output FILE  keeps the record in a file, however the program ends
      --json         prints {"pid", "status", "signal", "file"} when the program has ended; of status and
                     signal one is null, and file is null if nothing was kept

    Exit status: the program's; 128 and the signal's number if a signal ended it; 1 if the program
    cannot be run, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--output"])

  private let command: [String]
  private let path: String?
  private let isJSON: Bool

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    command = arguments.rest ?? []
    path = arguments.values["--output"]
    isJSON = arguments.isJSON
    if command.isEmpty || !arguments.words.isEmpty { throw .init(messages: ["name the program behind --"]) }
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    var gate: Int32 = -1
    // Command-line arguments contain no zero bytes.
    var words: [UnsafePointer<CChar>?] = command.map { word in (try? CText(word))?.copy().map { UnsafePointer($0) } }
    words.append(nil)
    defer { for word in words { free(UnsafeMutablePointer(mutating: word)) } }
    // Used by a program without a directory for its file.
    let memory = crlt_memory()
    defer { if memory >= 0 { close(memory) } }
    let child = crlt_spawn_held(words, "RUNLOOP_INSTRUMENTS", "record", memory, &gate)
    guard child > 0 else { throw RecordError("\(command[0]) cannot be run: \(String(cString: strerror(-child)))") }
    // The open file remains when the program removes its name at exit.
    let place = makePlace(child)
    crlt_let_go(gate)
    var state: Int32 = 0
    let waited = crlt_wait(child, &state)
    guard waited == 0 else {
      throw RecordError("\(command[0]) cannot be waited for: \(String(cString: strerror(-waited)))")
    }
    defer { if let place { close(place.descriptor) } }
    let signal = state & 0x7f
    let status = (state >> 8) & 0xff
    if signal == 0, status == 126 || status == 127, place.map({ isEmpty($0.descriptor) }) ?? true {
      place?.remove()
      throw RecordError("\(command[0]) cannot be run")
    }
    let hasMemory = memory >= 0 && !isEmpty(memory)
    if hasMemory { place?.remove() }
    let kept = try hasMemory ? keep(memory, child, isKilled: signal != 0) : keep(place, isKilled: signal != 0)
    report(child, status, signal, kept, output)
    return signal == 0 ? status : 128 + signal
  }

  /// The file for the program's records, created before the program runs.
  private struct Place {
    let directory: String
    let descriptor: Int32

    func remove() {
      unlink("\(directory)/rings")
      rmdir(directory)
    }
  }

  private func makePlace(_ child: Int32) -> Place? {
    guard let start = TargetProcess.start(of: child) else { return nil }
    for parent in RecordDirectory.own {
      var status = stat()
      mkdir(parent, 0o700)
      guard lstat(parent, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
        status.st_mode & 0o022 == 0
      else { continue }
      let directory = "\(parent)/\(child).\(start)"
      guard mkdir(directory, 0o700) == 0 else { continue }
      let file = CText.answer("\(directory)/rings") { crl_file_make(AT_FDCWD, $0, 0o600) }
      if file >= 0 { return Place(directory: directory, descriptor: file) }
      rmdir(directory)
    }
    return nil
  }

  private func isEmpty(_ descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) != 0 || status.st_size == 0
  }

  /// Keeps the record of a program that had no directory for it.
  private func keep(_ memory: Int32, _ child: Int32, isKilled: Bool) throws(RecordError) -> String? {
    guard path != nil || isKilled else { return nil }
    let target = path ?? RecordCommand.fallbackPath(child)
    try RecordCopy.write(memory, to: target)
    return target
  }

  /// The path for the record of a killed program that had no directory for it.
  ///
  /// The name is unpredictable, so that other users cannot create a file or directory there first.
  static func fallbackPath(_ child: Int32) -> String {
    var status = stat()
    let own = Environment.value("XDG_RUNTIME_DIR").flatMap { directory in
      directory.hasPrefix("/") && stat(directory, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        && status.st_uid == geteuid() && status.st_mode & 0o022 == 0 ? directory : nil
    }
    let directory = own ?? Environment.value("TMPDIR") ?? "/tmp"
    return "\(directory)/runloop-\(child).\(String(UInt64.random(in: .min ... .max), radix: 36)).record"
  }

  /// Keeps the record if one exists and was requested, and returns its path.
  private func keep(_ place: Place?, isKilled: Bool) throws(RecordError) -> String? {
    guard let place else {
      guard path == nil else { throw RecordError("there was no directory for the record: set RUNLOOP_DIR") }
      return nil
    }
    guard !isEmpty(place.descriptor) else {
      // No loop was created.
      place.remove()
      return nil
    }
    if let path {
      try RecordCopy.write(place.descriptor, to: path)
      return path
    }
    return isKilled ? "\(place.directory)/rings" : nil
  }

  private func report(_ child: Int32, _ status: Int32, _ signal: Int32, _ kept: String?, _ output: Output) {
    if isJSON {
      let document = JSON.object([
        ("pid", .int(Int(child))), ("status", signal == 0 ? .int(Int(status)) : .null),
        ("signal", signal == 0 ? .null : .int(Int(signal))), ("file", .optional(kept)),
      ])
      return output.print(document.line)
    }
    let end = signal == 0 ? "exited with \(status)" : "was ended by signal \(signal)"
    let advice: String
    switch (kept, path) {
    case (nil, _): advice = "nothing is kept; --output FILE keeps the record"
    case (_, let path?): advice = "see \"runloop postmortem \(path)\""
    case (let kept?, nil) where !kept.hasSuffix("/rings"): advice = "see \"runloop postmortem \(kept)\""
    default: advice = "see \"runloop postmortem --pid \(child)\""
    }
    output.complain("runloop record: process \(child) \(end); \(advice)")
  }
}
