// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import Synchronization

/// Descriptors that the program was started with by a service manager, such as `systemd` with a `.socket` unit.
///
/// The corresponding C function is `sd_listen_fds_with_names`.
public enum SocketActivation {
  /// A descriptor, with its name at the service manager.
  public struct Descriptor: Hashable, Sendable {
    /// The descriptor, which belongs to the caller: hand it to ``ListeningSocket/init(takingOver:options:handler:)`` or
    /// ``DatagramSocket/init(takingOver:options:handler:)``.
    public let number: Int32
    /// The name, `FileDescriptorName=` of the unit; "unknown" if there is none.
    public let name: String
  }

  /// The first number, by agreement with the service manager.
  private static let first: Int32 = 3
  private static let isTaken = Atomic<Bool>(false)

  /// Takes the descriptors that were passed to this process, so that they belong to the caller.
  ///
  /// They are closed on exec from now on. Can be called from any thread. A second call returns none.
  ///
  /// - Returns: The descriptors, in the order of the unit; none if the program was not started in this way, or the
  ///   variables are those of its parent.
  /// - Throws: ``SocketActivationError``; the descriptors stay as they are, and a further call tries again.
  public static func take() throws(SocketActivationError) -> [Descriptor] {
    guard !isTaken.load(ordering: .acquiring) else { return [] }
    let taken = try read(process: getpid(), first: first) { name in Environment.value(name) }
    // Of two at the same time one has them.
    return isTaken.exchange(true, ordering: .acquiringAndReleasing) ? [] : taken
  }

  /// The same with the variables and numbers that a test has.
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
        // A program that is started instead of this one is to have them all.
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

/// The answer of `fcntl`, or the kernel's error below zero.
private func control(_ descriptor: Int32, _ command: Int32, _ argument: Int32) -> Int32 {
  let answer = fcntl(descriptor, command, argument)
  return answer < 0 ? -errno : answer
}

/// The reason why the descriptors of a service manager cannot be taken.
public enum SocketActivationError: Error, Hashable, Sendable {
  /// A variable of the environment has a value that is not a number in its range.
  case malformed(variable: String, value: String)
  /// A descriptor that was announced is not open.
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
