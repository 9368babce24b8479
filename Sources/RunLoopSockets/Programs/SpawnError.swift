// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a program was not started.
public enum SpawnError: Error, Hashable, Sendable {
  /// There is no such program that can be read, or, for a name without a slash, none in the directories of `PATH`.
  case notFound(program: String)
  /// The program is a script whose first line names an interpreter that is not there or cannot be executed: `execve`.
  case interpreter(String, program: String, SystemError)
  /// A word for the program has a zero byte, which would end it.
  case zeroByte(String)
  /// A name of the environment is empty or has an equals sign, so that the program would read another name.
  case environmentName(String)
  /// A number for a descriptor is not from 3 to 65535.
  case badNumber(Int32)
  /// More descriptors were to be passed than can be.
  case tooManyDescriptors(Int, limit: Int)
  /// A descriptor of this process cannot be passed under its number there: `dup3` with `EBADF` if it is not open.
  case descriptor(Int32, as: Int32, program: String, SystemError)
  /// The directory where the program was to start cannot be entered: `chdir`.
  case directory(String, program: String, SystemError)
  /// Another system call has failed, of this process or of the child: `pipe2`, `open`, `clone`, `setsid`, `setpgid`,
  /// `execve`, `posix_openpt`, `ioctl (TIOCSCTTY)`.
  case system(program: String, SystemError)
}

extension SpawnError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .notFound(let program): "there is no program \"\(program)\""
    case .interpreter(let interpreter, let program, let error):
      "the first line of \"\(program)\" asks for \(interpreter.debugDescription), which cannot be executed: \(error)"
    case .zeroByte(let word): "\"\(word)\" has a zero byte"
    case .environmentName(let name): "\"\(name)\" is no name for a variable of the environment"
    case .badNumber(let number): "no descriptor can be passed as number \(number)"
    case .tooManyDescriptors(let count, let limit): "\(count) descriptors cannot be passed: the limit is \(limit)"
    case .descriptor(let descriptor, let number, let program, let error):
      "\"\(program)\" cannot get descriptor \(descriptor) as number \(number): \(error)"
    case .directory(let directory, let program, let error):
      "\"\(program)\" cannot be started in \"\(directory)\": \(error)"
    case .system(let program, let error): "\"\(program)\" cannot be started: \(error)"
    }
  }
}
