// SPDX-License-Identifier: Apache-2.0

import CRunLoopAgent
import CRunLoopRecorder
import RunLoopLibC
public import RunLoopCore

/// An error of the instruments.
public enum InstrumentsError: Error, Hashable, Sendable {
  /// The process has no directory for its records, because it could use none of the candidates.
  case noDirectory
  /// The directory is not owned by the user, is writable by others, or is a symbolic link.
  case untrustedDirectory(String)
  /// The process already listens in another directory.
  case alreadyListening
  /// The process has more rights than its caller or its memory is protected, so its agent does not respond.
  ///
  /// Such a process is a set-user-ID or set-group-ID program, has file capabilities, or is not dumpable.
  case privileged
  /// No records exist, because no loop was at the level ``Instruments/Level/record``.
  case nothingRecorded
  /// A system call failed.
  case system(SystemError)
}

extension InstrumentsError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .noDirectory:
      "the process has no directory for its records: set RUNLOOP_DIR to one of your own that others cannot write to"
    case .untrustedDirectory(let path):
      "\(path) is not used: it must be a directory of your own that others cannot write to, and no link"
    case .alreadyListening: "the process listens to the tool already, in another directory"
    case .privileged: "the process may do more than its caller, or is not dumpable, and answers no tool"
    case .nothingRecorded: "nothing has been recorded: no loop was at the level record"
    case .system(let error): "\(error)"
    }
  }
}

extension Instruments {
  /// Starts an agent that the tool `runloop` can ask about this process's loops and what keeps them alive.
  ///
  /// The agent's thread listens on the socket `agent` next to the process's records, to which only the user of the
  /// process and root can connect. It uses no processor time until a client connects. By default, a process listens
  /// from its first loop on, unless its environment contains `RUNLOOP_INSTRUMENTS=off` and no `RUNLOOP_DIR`. Call this
  /// to choose the directory, or to learn why the process does not listen. Can be called from any thread. Calling it
  /// again with the same directory has no effect.
  ///
  /// - Parameter directory: The directory in which the process's directory is created, as with `RUNLOOP_DIR`. The
  ///   default is `nil`, which means the directory of the records. The tool finds another directory by its own
  ///   `RUNLOOP_DIR`.
  /// - Throws: ``InstrumentsError/noDirectory``, ``InstrumentsError/untrustedDirectory(_:)``,
  ///   ``InstrumentsError/alreadyListening``, ``InstrumentsError/privileged``, or ``InstrumentsError/system(_:)`` if
  ///   the system lacks space, descriptors or threads.
  public static func listen(in directory: String? = nil) throws(InstrumentsError) {
    // Installs the handlers for forks.
    _ = ForkGeneration.current
    let answer = -(directory.map { path in CText.answer(path) { crla_listen($0) } } ?? crla_listen(nil))
    switch answer {
    case ...0: return
    case ENOENT where directory == nil: throw .noDirectory
    case EACCES where crl_is_privileged() != 0: throw .privileged
    case EPERM, ELOOP, ENOTDIR: throw .untrustedDirectory(directory ?? Instruments.directory ?? "the directory")
    case EALREADY: throw .alreadyListening
    default: throw .system(SystemError(call: "bind", number: answer))
    }
  }
}
