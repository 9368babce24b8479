// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Why a program was not started.
public enum SpawnError: Error, Hashable, Sendable {
  /// There is no such program, or, for a name without a slash, none in the directories of `PATH`.
  case notFound(program: String)
  /// A word that the program was to get has a zero byte, which would end it.
  case zeroByte(String)
  /// A number that a descriptor was to get is no number of one, or two descriptors were to get it.
  case badNumber(Int32)
  /// A system call has failed, of this process or of the child: `pipe2`, `open`, `clone`, `dup3`, `chdir`, `setsid`,
  /// `setpgid`, `execve`.
  case system(program: String, SystemError)
}

extension SpawnError: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .notFound(let program): "there is no program \"\(program)\""
    case .zeroByte(let word): "\"\(word)\" has a zero byte"
    case .badNumber(let number): "no descriptor can be passed as number \(number)"
    case .system(let program, let error): "\"\(program)\" cannot be started: \(error)"
    }
  }
}
