// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import Synchronization

/// The descriptors that a service manager passed to the program at start, such as `systemd` with a `.socket` unit.
///
/// The corresponding C function is `sd_listen_fds_with_names`.
public enum SocketActivation {
  /// A descriptor and its name at the service manager.
  public struct Descriptor: Hashable, Sendable {
    /// The descriptor, which the caller owns.
    ///
    /// Pass it to ``ListeningSocket/init(takingOver:options:handler:)`` or
    /// ``DatagramSocket/init(takingOver:options:handler:)``.
    public let number: Int32
    /// The name from `FileDescriptorName=` in the unit, or "unknown" if there is none.
    public let name: String
  }

  /// The number of the first passed descriptor, as defined by the protocol of service managers.
  private static let first: Int32 = 3
  private static let isTaken = Atomic<Bool>(false)

  /// Returns the descriptors that were passed to this process, and transfers their ownership to the caller.
  ///
  /// The descriptors are marked close-on-exec. Can be called from any thread. A second call returns none.
  ///
  /// - Returns: The descriptors, in the order of the unit, or none if the program was not started this way or the
  ///   environment variables were meant for its parent.
  /// - Throws: A ``SocketActivationError``. The descriptors are then unchanged, and a later call tries again.
  public static func take() throws(SocketActivationError) -> [Descriptor] {
    guard !isTaken.load(ordering: .acquiring) else { return [] }
    let taken = try read(process: getpid(), first: first) { name in Environment.value(name) }
    // If two threads call this at the same time, only one gets the descriptors.
    return isTaken.exchange(true, ordering: .acquiringAndReleasing) ? [] : taken
  }

  /// Implements ``take()`` with injectable variables and numbers for tests.
  static func read(
    process: Int32, first: Int32, _ variable: (String) -> String?
  ) throws(SocketActivationError) -> [Descriptor] {
    guard let owner = variable("LISTEN_PID"), let count = variable("LISTEN_FDS") else { return [] }
    guard let ownerNumber = Int32(owner), ownerNumber > 0 else {
      throw .malformed(variable: "LISTEN_PID", value: owner)
    }
    guard ownerNumber == process else { return [] }
    guard let countNumber = Int32(count), countNumber >= 0, countNumber <= 65536 else {
      throw .malformed(variable: "LISTEN_FDS", value: count)
    }
    let names = variable("LISTEN_FDNAMES")?.split(separator: ":", omittingEmptySubsequences: false) ?? []
    let numbers = (0..<countNumber).map { first + $0 }
    var before: [(number: Int32, flags: Int32)] = []
    for number in numbers {
      do throws(SystemError) {
        let flags = try SystemCall.descriptorFlags.make { control(number, F_GETFD, 0) }
        _ = try SystemCall.descriptorFlags.make { control(number, F_SETFD, FD_CLOEXEC) }
        before.append((number, flags))
      } catch {
        // Restore the flags, so that a program that replaces this one inherits all descriptors.
        for (number, flags) in before { _ = control(number, F_SETFD, flags) }
        throw .notOpen(descriptor: number, error)
      }
    }
    return numbers.enumerated().map { index, number in
      let name = index < names.count ? String(names[index]) : ""
      return Descriptor(number: number, name: name.isEmpty ? "unknown" : name)
    }
  }
}

/// Returns the result of `fcntl`, or the negated error number.
private func control(_ descriptor: Int32, _ command: Int32, _ argument: Int32) -> Int32 {
  let answer = fcntl(descriptor, command, argument)
  return answer < 0 ? -errno : answer
}

/// An error of taking over the descriptors of a service manager.
public enum SocketActivationError: Error, Hashable, Sendable {
  /// The value of an environment variable is not a number in the expected range.
  case malformed(variable: String, value: String)
  /// A descriptor announced by the service manager is not open.
  case notOpen(descriptor: Int32, SystemError)
}

extension SocketActivationError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .malformed(let variable, let value): "\(variable) is \"\(value)\", which is not a number in its range"
    case .notOpen(let descriptor, let error): "descriptor \(descriptor) of the service manager cannot be used: \(error)"
    }
  }
}
