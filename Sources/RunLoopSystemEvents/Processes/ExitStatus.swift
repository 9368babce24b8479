// SPDX-License-Identifier: Apache-2.0

internal import RunLoopLibC

extension ChildProcessSource {
  /// The way in which a child process ended.
  public enum ExitStatus: Hashable, Sendable {
    /// The child called `exit` with this code, or returned it from `main`; from 0 to 255.
    case exited(code: Int32)
    /// The child was terminated by a signal.
    case signalled(signal: Int32, coreDumped: Bool)

    /// Whether the child exited with code 0.
    public var isSuccess: Bool { self == .exited(code: 0) }
  }
}

extension ChildProcessSource.ExitStatus {
  /// Creates a status from the members of `siginfo_t` that `waitid` sets.
  init(code: Int32, status: Int32) {
    let exited: Int32 = 1
    let dumped: Int32 = 3
    self = code == exited ? .exited(code: status) : .signalled(signal: status, coreDumped: code == dumped)
  }
}

extension ChildProcessSource.ExitStatus: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .exited(let code): "exited with \(code)"
    case .signalled(let signal, let coreDumped): "ended by signal \(signal)" + (coreDumped ? ", core dumped" : "")
    }
  }
}
