// SPDX-License-Identifier: Apache-2.0

import CRunLoopAgent
import CRunLoopRecorder
import RunLoopLibC
public import RunLoopCore

/// The reason why the instruments cannot do what they were asked to.
public enum InstrumentsError: Error, Hashable, Sendable {
  /// The process has no directory for its records, because none of the directories that it tried could be used.
  case noDirectory
  /// The directory is not the user's own, others may write to it, or it is a link.
  case untrustedDirectory(String)
  /// The process listens already, in another directory.
  case alreadyListening
  /// The process may do more than its caller, or its memory may not be read by others: its agent does not answer.
  ///
  /// It is a set-user-ID or set-group-ID program, has capabilities of its file, or is not dumpable.
  case privileged
  /// Nothing has been recorded: no loop was at the level ``Instruments/Level/record``.
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
  /// Allows the tool `runloop` to ask this process what keeps its loops alive and what is in them.
  ///
  /// A thread of its own listens at a socket `agent` beside the process's records, to which only the user of the
  /// process and root can connect. It needs no processor time until somebody connects. A process listens from its first
  /// loop on without this call, unless `RUNLOOP_INSTRUMENTS` is `off` in its environment and `RUNLOOP_DIR` is not set;
  /// this call reports why it could not, and chooses the directory. Can be called from any thread. Calling it again for
  /// the same directory has no effect.
  ///
  /// - Parameter directory: A directory in which the directory of the process is made, as `RUNLOOP_DIR` names one; nil
  ///   means the directory of the records. The tool finds another directory by its own `RUNLOOP_DIR`.
  /// - Throws: ``InstrumentsError/noDirectory``, ``InstrumentsError/untrustedDirectory(_:)``,
  ///   ``InstrumentsError/alreadyListening``, ``InstrumentsError/privileged``, or ``InstrumentsError/system(_:)`` if
  ///   the system has no room, descriptor or thread for it.
  public static func listen(in directory: String? = nil) throws(InstrumentsError) {
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
