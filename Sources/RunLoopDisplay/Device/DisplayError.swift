// SPDX-License-Identifier: Apache-2.0

internal import RunLoopLibC

/// The reason that a device cannot be opened.
public enum DisplayError: Error, Hashable, Sendable {
  /// A descriptor is not a terminal.
  case notATerminal(descriptor: Int32)
  /// The terminal cannot show a screen, because `TERM` is `dumb` or missing.
  case unusableTerminal(name: String?)
  /// Another device of the process is using the terminal.
  case taken
  /// The process has opened the maximum number of terminals.
  case tooManyTerminals(limit: Int)
  /// A system call failed.
  case system(call: String, code: Int32)
}

extension DisplayError: CustomStringConvertible {
  /// A sentence for the user of a program.
  public var description: String {
    switch self {
    case .notATerminal(let descriptor):
      let name =
        switch descriptor {
        case 0: "The standard input"
        case 1: "The standard output"
        default: "The file with descriptor \(descriptor)"
        }
      return "\(name) is not a terminal."
    case .unusableTerminal(nil): return "The terminal cannot show a screen: the variable TERM is not set."
    case .unusableTerminal(let name?): return "The terminal cannot show a screen: the variable TERM is \"\(name)\"."
    case .taken: return "The terminal is taken already: close the other device of it first."
    case .tooManyTerminals(let limit): return "The terminal cannot be taken: a process can have \(limit) at a time."
    case .system(let call, let code): return "The terminal cannot be used: \(call) failed (\(errorText(code)))."
    }
  }
}

/// Returns the system's description of an error.
private func errorText(_ code: Int32) -> String {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
    guard let text = buffer.baseAddress, strerror_r(code, text, buffer.count) == 0 else { return "error \(code)" }
    return String(cString: text)
  }
}
