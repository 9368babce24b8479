// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopInstruments
import RunLoopHTTP
import RunLoopThreads

/// A client and a server on the loopback interface, with the client's loader watched.
///
/// Any thread.
final class NetworkRig: Sendable {
  let bench: Bench
  let server: LoopbackServer
  let client: HTTP.Client
  /// What the loader's loop does.
  let loader: WatchedLoop

  /// Says why it cannot be made: libcurl is opened here, with nothing sent.
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

  /// What is asked here is on this machine, whatever proxy the environment names for the connections.
  private static let isLocal = setenv("no_proxy", "127.0.0.1", 1) == 0

  private init(_ bench: Bench) throws {
    _ = Self.isLocal
    self.bench = bench
    loader = WatchedLoop()
    server = try LoopbackServer(bench.meeting)
    var configuration = HTTP.Configuration()
    configuration.interceptors = [
      .init { [loader] request in
        // The loader's thread.
        loader.watch()
        loader.note()
        return .proceed(request)
      }
    ]
    client = HTTP.Client(configuration)
  }

  /// Makes a first request, so that the loader's loop is watched before the experiment begins; why it failed.
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
    // Foundation keeps the cookies of connections in a file of the user's.
    Connections.forgetCookies(server.address("/"))
  }
}

/// Why there is no client to experiment with, in a sentence.
struct NetworkRigError: Error {
  let reason: String
}

extension Outcome {
  /// What is looked at, and what has to be seen.
  typealias Row = (subject: String, required: String)

  /// What was seen, row by row.
  init(of rows: [Row], observed: [String]) {
    self.init()
    for (row, seen) in zip(rows, observed) { observe(row.subject, seen, requires: row.required) }
  }

  /// Nothing was seen, for a reason that the first row says.
  init(of rows: [Row], reason: String) {
    self.init(of: rows, observed: [reason] + rows.dropFirst().map { _ in "not looked at" })
  }
}

/// A thread with a loop that is known by its number, and what it notes of itself.
///
/// Any thread, but for ``watch()`` and ``note()``, which are the loop's own.
final class WatchedLoop: Sendable {
  private let id = Found<Int32>(0)
  private let found = Found<RunLoop?>(nil)
  /// In which call-outs the thread came by a place that notes it.
  let visits = Record()

  /// Watches the calling thread's loop from now on.
  func watch() {
    guard found.value == nil else { return }
    id.value = callingThread
    found.value = RunLoop.current
  }

  /// Watches no more.
  func unwatch() { found.value = nil }

  /// Notes in which call-out the calling thread is.
  func note() { visits.write(currentCallOut()) }

  /// Whether the calling thread is the loop's.
  var isHere: Bool { id.value == callingThread }

  var threadID: Int32 { id.value }
  var description: String { found.value?.debugDescription ?? "" }

  /// Whether the loop waits.
  var isAsleep: Bool { LaboratoryKit.isAsleep(threadID) }

  func forget() { _ = visits.take() }
}
