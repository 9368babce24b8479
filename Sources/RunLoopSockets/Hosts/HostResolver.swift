// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents

/// Resolves host names to addresses without blocking a loop.
///
/// The system's `getaddrinfo` blocks, so it is called on threads of this library, which are created on demand and end
/// when nothing is left to look up. There are usually at most four in the process. A numeric host needs no thread.
///
/// The system may wait half a minute for a server that does not respond, and this cannot be interrupted. A lookup that
/// was cancelled, has timed out, or takes longer than a second while others are waiting occupies its thread until the
/// system returns, but no longer counts toward the four, so another thread can start. There are never more than 32
/// threads.
public enum HostResolver {
  /// The maximum number of concurrent lookups, not counting those that were cancelled or take long; others are queued.
  static let maximumLookupCount = 4
  /// The maximum number of threads, including those occupied by cancelled or long lookups.
  static let maximumThreadCount = 32
  /// The time after which a lookup no longer delays others.
  static let patience: Duration = .seconds(1)

  /// The outcome of a lookup.
  public typealias Answer = Result<[SocketAddress], HostError>

  /// Resolves a host, and calls a block with its addresses on a loop.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - host: A host name or a numeric address.
  ///   - port: The port of the resulting addresses.
  ///   - family: The address family to look for. Defaults to `nil`, which means IPv4 and IPv6 in the system's order of
  ///     preference.
  ///   - timeout: The time after which the result is ``HostError/timedOut(host:after:)``, measured by the loop in
  ///     `modes`. Defaults to `nil`, which leaves the limit to the system.
  ///   - loop: The loop that calls the block, never before this method returns, even for a numeric host.
  ///   - modes: The modes in which the loop calls the block.
  ///   - body: Called once, unless the lookup is cancelled or the loop's thread ends first. If the loop has ended, the
  ///     block is released without being called, which is reported on standard error, and ``HostLookup/isFinished`` is
  ///     true.
  /// - Returns: The lookup, which can be cancelled and need not be retained.
  @discardableResult
  public static func resolve(
    _ host: String, port: UInt16, family: SocketAddress.Family? = nil, timeout: Duration? = nil, on loop: RunLoop,
    inModes modes: [RunLoop.Mode] = [.default], _ body: @escaping @Sendable (Answer) -> Void
  ) -> HostLookup {
    resolve(
      Query(host: host, port: port, family: family), timeout: timeout, on: loop, inModes: modes, by: .shared, body)
  }

  /// Resolves a host with workers that tests can replace.
  static func resolve(
    _ query: Query, timeout: Duration?, on loop: RunLoop, inModes modes: [RunLoop.Mode], by workers: HostWorkers,
    _ body: @escaping @Sendable (Answer) -> Void
  ) -> HostLookup {
    let lookup = HostLookup(query) { lookup, answer in
      let end = LookupEnd(lookup)
      loop.perform(inModes: modes) {
        let lookup = end.lookup
        guard lookup.claim() else { return }
        lookup.stopTimer()
        noteCall(of: Call(body: body))
        body(answer)
      }
    }
    if let timeout {
      let timer = Timer(deadline: loop.instant(after: timeout)) { [weak lookup] _ in
        guard let lookup, lookup.claim() else { return }
        lookup.giveUp()
        noteCall(of: Call(body: body))
        body(.failure(.timedOut(host: query.host, after: timeout)))
      }
      lookup.start(timer)
      for mode in modes { loop.add(timer, forMode: mode) }
    }
    start(lookup, by: workers)
    return lookup
  }

  /// Resolves a host.
  ///
  /// If the task is cancelled, this throws ``HostError/cancelled(host:)`` at once, and a later result is dropped.
  ///
  /// - Parameters:
  ///   - host: A host name or a numeric address.
  ///   - port: The port of the resulting addresses.
  ///   - family: The address family to look for. Defaults to `nil`, which means IPv4 and IPv6 in the system's order of
  ///     preference.
  ///   - timeout: The time after which this throws ``HostError/timedOut(host:after:)``. Defaults to `nil`, which
  ///     leaves the limit to the system.
  /// - Throws: A ``HostError``.
  public static func resolve(
    _ host: String, port: UInt16, family: SocketAddress.Family? = nil, timeout: Duration? = nil
  ) async throws -> [SocketAddress] {
    try await resolve(Query(host: host, port: port, family: family), timeout: timeout, by: .shared)
  }

  /// Resolves a host with workers that tests can replace.
  static func resolve(_ query: Query, timeout: Duration?, by workers: HostWorkers) async throws -> [SocketAddress] {
    let answer = AwaitedAnswer<Answer>()
    let lookup = HostLookup(query) { _, found in answer.give(found) }
    defer { lookup.stopTimer() }
    if let timeout {
      let loop = ServiceThread.loop
      let timer = Timer(deadline: loop.instant(after: timeout)) { _ in
        answer.give(.failure(.timedOut(host: query.host, after: timeout)))
        lookup.cancel()
      }
      lookup.start(timer)
      loop.add(timer, forMode: .default)
    }
    start(lookup, by: workers)
    return try await answer.value {
      lookup.cancel()
      answer.give(.failure(.cancelled(host: query.host)))
    }.get()
  }

  private static func start(_ lookup: HostLookup, by workers: HostWorkers) {
    if let address = try? SocketAddress(host: lookup.query.host, port: lookup.query.port) {
      let fits = lookup.query.family == nil || lookup.query.family == address.family
      lookup.finish(fits ? .success([address]) : .failure(.unknown(host: lookup.query.host)))
    } else {
      workers.add(lookup)
    }
  }

  /// Cancels a lookup when its loop releases the block without calling it.
  private final class LookupEnd: Sendable {
    let lookup: HostLookup

    init(_ lookup: HostLookup) { self.lookup = lookup }

    deinit { lookup.cancel() }
  }

  /// Wraps the block in a structure whose name identifies the call in a recording.
  private struct Call {
    let body: @Sendable (Answer) -> Void
  }

  struct Query: Sendable {
    let host: String
    let port: UInt16
    let family: SocketAddress.Family?

    /// Asks the system, which may block for a long time.
    func answer() -> Answer {
      guard !host.utf8.contains(0), !host.isEmpty else { return .failure(.unknown(host: host)) }
      let found = Found()
      var number: Int32 = 0
      let systemFamily: Int32 =
        switch family {
        case nil, .unix: AF_UNSPEC
        case .ipv4: crl_family_ipv4
        case .ipv6: crl_family_ipv6
        }
      do throws(SystemError) {
        _ = try SystemCall.lookUp.make {
          crl_host_look_up(
            host, "\(port)", systemFamily, &number,
            { context, address, length in
              guard let context, let address else { return }
              Unmanaged<Found>.fromOpaque(context).takeUnretainedValue().add(address, length)
            }, Unmanaged.passUnretained(found).toOpaque())
        }
        return found.addresses.isEmpty ? .failure(.unknown(host: host)) : .success(found.addresses)
      } catch {
        return .failure(HostError(host, answer: -error.number, number: number))
      }
    }

    private final class Found {
      var addresses: [SocketAddress] = []

      func add(_ address: UnsafeRawPointer, _ length: UInt32) {
        let bytes = UnsafeRawBufferPointer(start: address, count: Int(length))
        if let address = SocketAddress(bytes: bytes), !addresses.contains(address) { addresses.append(address) }
      }
    }
  }
}

/// An error of resolving a host.
public enum HostError: Error, Hashable, Sendable {
  /// There is no such host, or it has no address of the requested family.
  case unknown(host: String)
  /// The system did not return a result within the time limit.
  case timedOut(host: String, after: Duration)
  /// The addresses cannot be found now; a later attempt may succeed.
  case temporary(host: String)
  /// The resolver has failed, with a reason from the system.
  case failed(host: String, reason: String)
  /// A system call of the resolver, or the creation of its thread, has failed.
  case system(host: String, SystemError)
  /// The task was cancelled.
  case cancelled(host: String)

  init(_ host: String, answer: Int32, number: Int32) {
    switch answer {
    case crl_host_error_unknown, crl_host_error_no_data: self = .unknown(host: host)
    case crl_host_error_again: self = .temporary(host: host)
    case crl_host_error_system:
      self = .system(host: host, SystemError(call: SystemCall.lookUp.rawValue, number: number))
    default: self = .failed(host: host, reason: crl_host_error_text(answer).map { String(cString: $0) } ?? "\(answer)")
    }
  }
}

extension HostError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .unknown(let host): "the host \"\(host)\" is not known"
    case .timedOut(let host, let time): "\"\(host)\" was not found within \(time)"
    case .temporary(let host): "\"\(host)\" cannot be looked up now"
    case .failed(let host, let reason): "\"\(host)\" cannot be looked up: \(reason)"
    case .system(let host, let error): "\"\(host)\" cannot be looked up: \(error)"
    case .cancelled(let host): "the lookup of \"\(host)\" was cancelled"
    }
  }
}
