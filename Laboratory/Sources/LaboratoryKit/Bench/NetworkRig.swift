// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopNetworking
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

  private init(_ bench: Bench) throws {
    self.bench = bench
    loader = WatchedLoop(bench.meeting)
    server = try LoopbackServer(bench.meeting)
    var configuration = HTTP.Configuration()
    configuration.interceptors = [
      { [loader] request in
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
    operation.onCompletionByLoader { result in
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

/// A loop whose thread and call-outs are noted.
///
/// Any thread, but for ``watch()`` and ``note()``, which are the loop's own.
final class WatchedLoop: Sendable {
  private let id = Found<Int32>(0)
  private let found = Found<RunLoop?>(nil)
  private let kinds = Record()
  private let open = Found<[String]>([])
  private let sleeping = Found(false)
  /// In which call-outs the thread came by a place that notes it.
  let visits = Record()
  private let meeting: Meeting

  init(_ meeting: Meeting) { self.meeting = meeting }

  /// Watches the calling thread's loop from now on.
  func watch() {
    guard found.value == nil else { return }
    id.value = RunLoop.callingThreadID
    found.value = RunLoop.current
    RunLoop.current.setTraceHook { [open, kinds, meeting, sleeping] event in
      switch event.kind {
      case .callOut(let callOut):
        open.append(callOut.rawValue)
        if kinds.lines.last != callOut.rawValue { kinds.write(callOut.rawValue) }
      case .callOutEnded:
        open.value = open.value.dropLast()
        meeting.announce()
      case .sleep:
        sleeping.value = true
        meeting.announce()
      case .activity(.afterWaiting): sleeping.value = false
      case .activity: break
      }
    }
  }

  /// Watches no more.
  func unwatch() {
    found.value?.setTraceHook(nil)
    found.value = nil
  }

  /// Notes in which call-out the calling thread is.
  func note() { visits.write(callOut) }

  /// The innermost call-out that is being made, or `none`.
  var callOut: String { open.value.last ?? "none" }

  /// Whether the calling thread is the loop's.
  var isHere: Bool { id.value == RunLoop.callingThreadID }

  var threadID: Int32 { id.value }
  var description: String { found.value?.debugDescription ?? "" }

  /// Whether the loop waits.
  var isAsleep: Bool { sleeping.value }

  /// Whether call-outs of a kind have been made since ``forget()`` or ``forgetKinds()``.
  func hasCalled(_ kind: String) -> Bool { kinds.lines.contains(kind) }

  func forgetKinds() { _ = kinds.take() }

  func forget() {
    forgetKinds()
    _ = visits.take()
  }
}

/// A delegate of a connection that notes on which thread and in which kind of call-out it is called.
final class WatchedDelegate: ConnectionDelegate {
  let steps = Record()
  private let place: @Sendable () -> String
  private let meeting: Meeting
  private let body = Found("")
  let ends = Tally()
  /// Called on the loop when the answer begins.
  let onResponse: @Sendable () -> Void
  let onEnd: @Sendable () -> Void

  init(
    _ meeting: Meeting, onResponse: @escaping @Sendable () -> Void = {}, onEnd: @escaping @Sendable () -> Void = {},
    _ place: @escaping @Sendable () -> String
  ) {
    self.meeting = meeting
    self.onResponse = onResponse
    self.onEnd = onEnd
    self.place = place
  }

  var received: String { body.value }

  private func note(_ step: String) {
    steps.write("\(step): \(place())")
    meeting.announce()
  }

  func connection(storeCookiesOf response: HTTP.Response) { note("cookies") }

  func connection(didReceive response: HTTP.Response) {
    body.value = ""
    note("response")
    onResponse()
  }

  func connection(didReceive bytes: [UInt8]) {
    body.value += String(decoding: bytes, as: UTF8.self)
    // The body may come in parts.
    if body.value == LoopbackServer.body { note("body") }
    meeting.announce()
  }

  func connectionDidEnd(_ error: HTTP.Error?) {
    ends.add()
    note(error.map { $0.code.name } ?? "end")
    onEnd()
  }
}
