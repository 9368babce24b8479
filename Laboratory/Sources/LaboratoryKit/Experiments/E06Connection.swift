// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopInstruments
import RunLoopHTTP
import RunLoopURLConnection

/// E6: the threads and sources of a request, from its start to its delegate.
struct ConnectionPath: Experiment {
  let id = "E6"
  let title = "The threads and sources of NSURLConnection"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A connection that is started gets the current loop and adds four source 0s to its default mode; CFMultiplexerSource makes the \
    delegate's callbacks, CFHTTPCookieStorage is for cookies. Two threads are made: com.apple.CFSocket.private handles the \
    sockets, and the loop of com.apple.NSURLConnectionLoader is notified by them through source 1s; it then signals the source 0s \
    and wakes the delegate's loop, which performs the actual callbacks.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    Both articles print the stacks of the two threads and of a delegate's callback. They count four sources and name two; what the \
    others are is not said.
    """
  let difference = Difference.addition(
    """
    There is no thread for sockets: epoll is the loader's own wait, so that each socket is itself a source 1 of the loader's loop. \
    The loader is called HTTP.Loader, and the two sources that the articles name are HTTP.MultiplexerSource and HTTP.CookieSource.
    """)

  /// The subjects of the observations, and the required results.
  private static let rows: [Outcome.Row] = [
    (
      "the default mode's source 0s before a start, while it runs, and after its end",
      "none, HTTP.CookieSource HTTP.MultiplexerSource, none"
    ),
    ("the other modes' meanwhile", "none"),
    ("who takes the request that was started, and by what", "the loader, by a source0"),
    ("by what the loader's thread serves the socket", "source1"),
    ("the loader's source 1s while an answer is on its way: a port keeps the thread", "sockets 1, ports 1"),
    (
      "when cookies are kept, and where the delegate is called",
      """
      cookies: before the answer, not before the caller's loop runs; response: the caller, by a source0; \
      body: the caller, by a source0; end: the caller, by a source0
      """
    ),
    ("threads of these steps: the caller, the loader, and further ones", "1, 1, 0"),
    (
      "an answer that has arrived, in a run of another mode, and then of the default mode",
      "none, then response body end"
    ),
    ("the end that a task would get, without a loop", "called by the loader"),
  ]

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      switch NetworkRig.make(on: bench) {
      case .failure(let error): return Outcome(of: Self.rows, reason: error.reason)
      case .success(let rig):
        defer { rig.end() }
        return Outcome(of: Self.rows, observed: observe(rig))
      }
    }
  }

  private func observe(_ rig: NetworkRig) -> [String] {
    let caller = WatchedLoop()
    caller.watch()
    defer { caller.unwatch() }
    let steps = request(rig, caller)
    let loads = load(rig)
    return [
      steps.sources, steps.others, loads.taken, loads.sockets, loads.sources, steps.delegate, steps.threads,
      modes(rig, caller), async(rig),
    ]
  }

  /// The observations of a connection, from its caller.
  private struct Steps {
    var sources = ""
    var others = ""
    var delegate = ""
    var threads = ""
  }

  private func request(_ rig: NetworkRig, _ caller: WatchedLoop) -> Steps {
    var steps = Steps()
    let loop = RunLoop.current
    let place = place(rig, caller)
    let strangers = Tally()
    let address = rig.server.address("/parts")
    Connections.forgetCookies(address)
    let cookies = Found("cookies: not kept before the answer")
    let delegate = WatchedDelegate(rig.bench.meeting) {
      if Connections.hasCookie(address) { cookies.value = "cookies: before the answer" }
      rig.server.sendRest()
    } onEnd: {
      RunLoop.current.stop()
    } _: {
      if !caller.isHere, !rig.loader.isHere { strangers.add() }
      return place()
    }
    let before = networkSources(of: .default)
    guard let connection = Connections.make(address, delegate) else { return steps }
    connection.start()
    let during = networkSources(of: .default)
    steps.others = otherSources()
    rig.bench.meeting.look { rig.server.requests.lines.last == "/parts" && Loaders.areAsleep }
    let isEarly = Connections.hasCookie(address)
    runDefaultMode(of: loop, rig.bench, until: { delegate.ends.count > 0 })
    steps.sources = "\(before), \(during), \(networkSources(of: .default))"
    let lines = [cookies.value + (isEarly ? "" : ", not before the caller's loop runs")] + delegate.steps.lines
    steps.delegate = lines.joined(separator: "; ")
    for line in lines { rig.bench.log.write(line) }
    let isApart = rig.loader.threadID != caller.threadID
    steps.threads = "1, \(isApart ? 1 : 0), \(strangers.count)"
    return steps
  }

  /// Returns the observations of a loader that handles a request.
  private func load(_ rig: NetworkRig) -> (taken: String, sockets: String, sources: String) {
    let operation = rig.client.operation(
      rig.server.request("/parts"), output: .discard, on: .current, inModes: [.default])
    let (callOut, hasEnded) = (Found("nothing"), rig.bench.flag())
    operation.onCompletion(on: .immediately) { _ in
      callOut.value = currentCallOut()
      hasEnded.set()
    }
    rig.loader.forget()
    let before = rig.server.requests.count
    operation.start()
    // The rest of the response is sent once the loader has nothing left to do and waits.
    rig.bench.meeting.look { rig.server.requests.count > before && operation.response != nil && rig.loader.isAsleep }
    let (description, mode) = (rig.loader.description, RunLoop.Mode.default)
    let sockets = sourceLines(of: description, "<RunLoop.DescriptorSource ", in: mode).count
    let ports = sourceLines(of: description, "<ResidentKeepAlive ", in: mode).count
    rig.server.sendRest()
    hasEnded.wait()
    let taken = rig.loader.visits.lines.first.map { "the loader, by a \($0)" } ?? "nobody"
    return (taken, callOut.value, "sockets \(sockets), ports \(ports)")
  }

  private func modes(_ rig: NetworkRig, _ caller: WatchedLoop) -> String {
    let loop = RunLoop.current
    let names = Record()
    let delegate = WatchedDelegate(rig.bench.meeting, onEnd: { RunLoop.current.stop() }) { "" }
    guard let connection = Connections.make(rig.server.address("/"), delegate) else { return "no connection" }
    let before = rig.server.requests.count
    connection.start()
    rig.bench.meeting.look { rig.server.requests.count > before && Loaders.areAsleep }
    let source = RunLoop.Source { [loop] in loop.stop() }
    loop.add(source, forMode: .tracking)
    source.signal()
    loop.run(mode: .tracking, for: .milliseconds(500))
    source.invalidate()
    let tracking = delegate.steps.text
    runDefaultMode(of: loop, rig.bench, until: { delegate.ends.count > 0 })
    for step in delegate.steps.lines { names.write(String(step.prefix { $0 != ":" })) }
    return "\(tracking), then \(names.text)"
  }

  /// Returns the events with which the loader resumes asynchronous functions.
  private func async(_ rig: NetworkRig) -> String {
    let operation = rig.client.operation(rig.server.request("/"), output: .discard)
    let (isOnLoader, hasEnded) = (Found(false), rig.bench.flag())
    operation.onCompletion(on: .immediately) { [loader = rig.loader] _ in
      isOnLoader.value = loader.isHere
      hasEnded.set()
    }
    operation.start()
    guard hasEnded.wait() else { return "not called" }
    return isOnLoader.value ? "called by the loader" : "called by another thread"
  }

  /// Returns a closure that describes where it is called: on which of the two threads, and in which kind of call-out.
  private func place(_ rig: NetworkRig, _ caller: WatchedLoop) -> @Sendable () -> String {
    { [loader = rig.loader] in
      if caller.isHere { return "the caller, by a \(currentCallOut())" }
      return loader.isHere ? "the loader, by a \(currentCallOut())" : "another thread"
    }
  }
}

/// The loaders of all clients.
private enum Loaders {
  /// Whether all loaders have nothing left to do.
  static var areAsleep: Bool { Instruments.loops.allSatisfy { $0.name != "HTTP.Loader" || $0.isWaiting } }
}

/// Runs a loop in the default mode until a condition holds or the bench's timeout has passed.
private func runDefaultMode(of loop: RunLoop, _ bench: Bench, until isTrue: () -> Bool) {
  let deadline = ContinuousClock.now + bench.meeting.patience
  while !isTrue(), ContinuousClock.now < deadline {
    loop.run(mode: .default, for: .milliseconds(100), returnAfterSourceHandled: true)
  }
}

/// Returns the version 0 sources in a mode of the calling thread's loop, those of clients by their names.
private func networkSources(of mode: RunLoop.Mode) -> String {
  let sources = sourceLines(of: RunLoop.current.debugDescription, "version = 0", in: mode)
  return sources.isEmpty ? "none" : sources.sorted().joined(separator: " ")
}

/// Returns the version 0 sources of the other modes.
private func otherSources() -> String {
  let description = RunLoop.current.debugDescription
  let modes = RunLoop.current.modes.filter { $0 != .default }
  let sources = modes.flatMap { sourceLines(of: description, "version = 0", in: $0) }
  return sources.isEmpty ? "none" : sources.sorted().joined(separator: " ")
}

/// Returns the sources of a kind that a loop's description lists in a mode, by the names of their call-outs.
private func sourceLines(of description: String, _ kind: String, in wanted: RunLoop.Mode) -> [String] {
  var (names, mode): ([String], String?) = ([], nil)
  for line in description.split(separator: "\n") {
    if let name = line.firstRange(of: "{name = ").map({ line[$0.upperBound...] }) {
      mode = String(name.prefix { $0 != "," })
    }
    guard mode == wanted.rawValue, line.contains(kind) else { continue }
    let name = line.firstRange(of: "callout = ").map { line[$0.upperBound...].prefix { $0 != "}" } }
    names.append(name.map(String.init) ?? "unnamed")
  }
  return names
}
