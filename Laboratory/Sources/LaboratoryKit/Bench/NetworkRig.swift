// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopHTTP
import RunLoopThreads

/// A client and a server on the loopback interface, with the client's loader watched; can be used from any thread.
final class NetworkRig: Sendable {
  let bench: Bench
  let server: LoopbackServer
  let client: HTTP.Client
  /// The record of the loader's loop.
  let loader: WatchedLoop

  /// Creates a rig, or returns the reason why there is none: libcurl is loaded here, before any request.
  static func make(on bench: Bench) -> Result<NetworkRig, NetworkRigError> {
    do {
      let rig = try NetworkRig(bench)
      if let reason = rig.prepare() {
        rig.end()
        return .failure(NetworkRigError(reason: reason))
      }
      return .success(rig)
    } catch {
      return .failure(NetworkRigError(reason: "the network cannot be prepared: \(error)"))
    }
  }

  /// Keeps the environment's proxies from being used for requests to this machine.
  private static let isLocal = setenv("no_proxy", "127.0.0.1", 1) == 0

  private init(_ bench: Bench) throws {
    _ = Self.isLocal
    self.bench = bench
    loader = WatchedLoop()
    server = try LoopbackServer(bench.meeting)
    var configuration = HTTP.Configuration()
    configuration.interceptors = [
      .init { [loader] request in
        // On the loader's thread.
        loader.watch()
        loader.note()
        return .proceed(request)
      }
    ]
    client = HTTP.Client(configuration)
  }

  /// Makes a first request, so that the loader's loop is watched before the experiment begins.
  ///
  /// Returns a failure, if any.
  private func prepare() -> String? {
    let operation = client.operation(server.request("/"), output: .discard, on: .current, inModes: [.default])
    let end = Found<String?>(nil)
    let hasEnded = bench.flag()
    operation.onCompletion(on: .immediately) { result in
      if case .failure(let error) = result { end.value = error.code == .noLibrary ? error.detail : "\(error.code)" }
      hasEnded.set()
    }
    operation.start()
    guard hasEnded.wait() else { return "the server on the loopback interface does not answer" }
    loader.forget()
    return end.value
  }

  func end() {
    client.stop(.immediately)
    server.stop()
    // Foundation stores the cookies of connections in a file of the user.
    Connections.forgetCookies(server.address("/"))
  }
}

/// The reason why there is no client to experiment with.
struct NetworkRigError: Error {
  let reason: String
}

extension Outcome {
  /// The subject of an observation, and the required result.
  typealias Row = (subject: String, required: String)

  /// Creates the outcome of the observations, row by row.
  init(of rows: [Row], observed: [String]) {
    self.init()
    for (row, seen) in zip(rows, observed) { observe(row.subject, seen, requires: row.required) }
  }

  /// Creates an outcome without observations, whose first row has the reason.
  init(of rows: [Row], reason: String) {
    self.init(of: rows, observed: [reason] + rows.dropFirst().map { _ in "not looked at" })
  }
}

/// A loop identified by its thread's number, and the record of its visits.
///
/// Can be used from any thread, except for ``watch()`` and ``note()``, which must be called on the loop's thread.
final class WatchedLoop: Sendable {
  private let id = Found<Int32>(0)
  private let found = Found<RunLoop?>(nil)
  /// The call-outs in which the thread reached a place that records them.
  let visits = Record()

  /// Starts watching the calling thread's loop.
  func watch() {
    guard found.value == nil else { return }
    id.value = callingThread
    found.value = RunLoop.current
  }

  /// Stops watching.
  func unwatch() { found.value = nil }

  /// Records the call-out that the calling thread is in.
  func note() { visits.write(currentCallOut()) }

  /// Whether the calling thread is the loop's thread.
  var isHere: Bool { id.value == callingThread }

  var threadID: Int32 { id.value }
  var description: String { found.value?.debugDescription ?? "" }

  /// Whether the loop is waiting.
  var isAsleep: Bool { LaboratoryKit.isAsleep(threadID) }

  func forget() { _ = visits.take() }
}
