// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents

/// Finds the addresses of hosts by their names, without keeping a loop waiting.
///
/// The system's `getaddrinfo` blocks, so it is called on threads of our own: as a rule at most four in the process,
/// which are made when there is something to look up and ended when there is nothing more. A numeric host
/// needs no thread.
///
/// The system may wait half a minute for servers that do not answer, and cannot be interrupted. A lookup that is
/// cancelled or has timed out, or that takes longer than a second while others wait, keeps its thread until the system
/// is done, but not its place among the four: another thread is started. There are never more than 32.
public enum HostResolver {
  /// How many lookups run at a time, except those that are cancelled or take long; the others wait for their turn.
  static let maximumLookupCount = 4
  /// The largest number of threads that look up hosts, including those that cancelled or long lookups keep.
  static let maximumThreadCount = 32
  /// For how long a lookup keeps others waiting.
  static let patience: Duration = .seconds(1)

  /// The outcome of a lookup.
  public typealias Answer = Result<[SocketAddress], HostError>

  /// Looks a host up and calls a block with its addresses on a loop.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - host: A name, or a numeric host.
  ///   - port: The port that the addresses get.
  ///   - family: Which addresses to look for; nil means those of IPv4 and IPv6, in the order that the system prefers.
  ///   - timeout: After how long the answer is ``HostError/timedOut(host:after:)``; nil means as long as the system
  ///     tries. It is counted by the loop, in these modes.
  ///   - loop: The loop that calls the block, even for a numeric host: never before this returns.
  ///   - modes: The modes in which the loop calls the block.
  ///   - body: Called once, unless the lookup is cancelled or the loop's thread ends before. On a loop that has ended
  ///     it is released uncalled, which the standard error reports, and ``HostLookup/isFinished`` is true.
  /// - Returns: The lookup, to cancel it; it goes on without being held.
  @discardableResult
  public static func resolve(
    _ host: String, port: UInt16, family: SocketAddress.Family? = nil, timeout: Duration? = nil, on loop: RunLoop,
    inModes modes: [RunLoop.Mode] = [.default], _ body: @escaping @Sendable (Answer) -> Void
  ) -> HostLookup {
    resolve(
      Query(host: host, port: port, family: family), timeout: timeout, on: loop, inModes: modes, by: .shared, body)
  }

  /// Looks a host up by threads that a test may choose.
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

  /// Looks a host up.
  ///
  /// A task that is cancelled gets ``HostError/cancelled(host:)`` at once; what the system finds later is dropped.
  ///
  /// - Parameters:
  ///   - host: A name, or a numeric host.
  ///   - port: The port that the addresses get.
  ///   - family: Which addresses to look for; nil means those of IPv4 and IPv6, in the order that the system prefers.
  ///   - timeout: After how long it throws ``HostError/timedOut(host:after:)``; nil means as long as the system tries.
  /// - Throws: ``HostError``.
  public static func resolve(
    _ host: String, port: UInt16, family: SocketAddress.Family? = nil, timeout: Duration? = nil
  ) async throws -> [SocketAddress] {
    try await resolve(Query(host: host, port: port, family: family), timeout: timeout, by: .shared)
  }

  /// Looks a host up by threads that a test may choose.
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

  /// Ends a lookup whose loop releases the block uncalled.
  private final class LookupEnd: Sendable {
    let lookup: HostLookup

    init(_ lookup: HostLookup) { self.lookup = lookup }

    deinit { lookup.cancel() }
  }

  /// What is called with an answer, so that a record names it.
  private struct Call {
    let body: @Sendable (Answer) -> Void
  }

  struct Query: Sendable {
    let host: String
    let port: UInt16
    let family: SocketAddress.Family?

    /// Asks the system, which may take long.
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

    /// Addresses as the system gives them.
    private final class Found {
      var addresses: [SocketAddress] = []

      func add(_ address: UnsafeRawPointer, _ length: UInt32) {
        let bytes = UnsafeRawBufferPointer(start: address, count: Int(length))
        if let address = SocketAddress(bytes: bytes), !addresses.contains(address) { addresses.append(address) }
      }
    }
  }
}

/// The reason why a host has no addresses.
public enum HostError: Error, Hashable, Sendable {
  /// There is no such host, or it has no address of the family.
  case unknown(host: String)
  /// The system had no answer within the time limit.
  case timedOut(host: String, after: Duration)
  /// The addresses cannot be found now, but perhaps later.
  case temporary(host: String)
  /// The resolver has failed, for a reason in its words.
  case failed(host: String, reason: String)
  /// A system call has failed, in the resolver or in making its thread.
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
