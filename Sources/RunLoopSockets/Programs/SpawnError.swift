// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of starting a program.
public enum SpawnError: Error, Hashable, Sendable {
  /// There is no such program that can be read or, for a name without a slash, none in the directories of `PATH`.
  case notFound(program: String)
  /// The program is a script whose interpreter does not exist or cannot be executed (`execve`).
  case interpreter(String, program: String, SystemError)
  /// A word passed to the program contains a zero byte, which would end it.
  case zeroByte(String)
  /// The name of an environment variable is empty or contains an equals sign, which would change the name.
  case environmentName(String)
  /// A descriptor's number in the child is not from 3 to 65535.
  case badNumber(Int32)
  /// There are more descriptors to pass than the limit allows.
  case tooManyDescriptors(Int, limit: Int)
  /// A descriptor of this process cannot be passed under its number in the child: `dup3` with `EBADF` if it is not
  /// open.
  case descriptor(Int32, as: Int32, program: String, SystemError)
  /// The working directory for the program cannot be entered (`chdir`).
  case directory(String, program: String, SystemError)
  /// Another system call of this process or of the child has failed: `pipe2`, `open`, `clone`, `setsid`, `setpgid`,
  /// `execve`, `posix_openpt` or `ioctl (TIOCSCTTY)`.
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
