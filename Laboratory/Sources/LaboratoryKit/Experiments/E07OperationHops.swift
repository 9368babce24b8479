// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopURLConnection
import RunLoopThreads

/// E7: the steps of AFNetworking's operations on their own thread.
struct OperationHops: Experiment {
  let id = "E7"
  let title = "AFNetworking's operations and their thread"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    AFURLConnectionOperation is made of NSURLConnection and wants its delegate called in the background: so there is one thread \
    with a loop, named AFNetworking, kept by a port. The start of an operation, and the cancellation of one that was cancelled \
    before, are handed to that thread by performSelector:onThread:, in the operation's runLoopModes.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    Both articles print networkRequestThreadEntryPoint, networkRequestThread and start; AFNetworking 2 hands cancel and pause to the \
    same thread. That performSelector:onThread: is performed by a source 0 is shown by D14.
    """
  let difference = Difference.addition(
    """
    A resident thread stands in for the thread with the port, and can be ended. A paused operation that is cancelled ends, which \
    AFNetworking's does not; what is resumed goes on only with the same version of the body, and is never appended to another.
    """)

  /// The subjects of the observations, and the required results.
  private static let rows: [Outcome.Row] = [
    ("who starts an operation that another thread starts", "AFNetworking, by a source0"),
    ("where its delegate is called", "response body end, all on AFNetworking by a source0"),
    ("the threads of the caller, of AFNetworking and of the loader", "three different ones"),
    (
      "the start of an operation that was cancelled before",
      "cancelled on AFNetworking by a source0, connections 0, ends 1"
    ),
    (
      "an operation that is cancelled while it waits for an answer",
      "cancelled on AFNetworking by a source0, connections 1, ends 1, and the server sees it go"
    ),
    (
      "an operation that is paused in the middle of a body, and resumed",
      "asked for /half, /half from 5; the body 0123456789; responses 1, ends 1"
    ),
    ("a paused operation that is cancelled", "cancelled on AFNetworking by a source0, connections 1, ends 1"),
  ]

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      guard let thread = AFURLConnectionOperation.networkRequestThread else {
        return Outcome(of: Self.rows, reason: "the thread cannot start")
      }
      switch NetworkRig.make(on: bench) {
      case .failure(let error): return Outcome(of: Self.rows, reason: error.reason)
      case .success(let rig):
        defer { rig.end() }
        return Outcome(of: Self.rows, observed: observe(HopRig(rig, thread)))
      }
    }
  }

  private func observe(_ rig: HopRig) -> [String] {
    rig.prepare()
    defer { rig.finish() }
    let started = start(rig)
    for step in rig.delegateSteps { rig.network.bench.log.write(step) }
    return [
      started, places(of: rig.delegateSteps), rig.threads, cancelledBefore(rig), cancelledInFlight(rig), paused(rig),
      cancelledPaused(rig),
    ]
  }

  private func start(_ rig: HopRig) -> String {
    let operation = rig.operation("/")
    operation.start()
    rig.wait { operation.ends.count > 0 }
    rig.delegateSteps = operation.steps.lines
    return operation.connects.text
  }

  private func cancelledBefore(_ rig: HopRig) -> String {
    let operation = rig.operation("/")
    operation.cancel()
    let early = operation.ends.count
    operation.start()
    operation.start()
    rig.settle { operation.ends.count > early }
    return operation.text
  }

  private func cancelledInFlight(_ rig: HopRig) -> String {
    let operation = rig.operation("/silent")
    let ended = rig.network.server.ended.count
    operation.start()
    rig.wait { rig.network.server.requests.lines.contains("/silent") }
    operation.cancel()
    operation.cancel()
    rig.settle { operation.ends.count > 0 }
    let isGone = rig.wait { rig.network.server.ended.count > ended }
    return operation.text + (isGone ? ", and the server sees it go" : "")
  }

  private func paused(_ rig: HopRig) -> String {
    let operation = rig.operation("/half")
    let server = rig.network.server
    let before = server.requests.count
    operation.start()
    rig.wait { operation.received == "01234" }
    operation.pause()
    operation.resume()
    rig.settle { operation.ends.count > 0 }
    let asked = server.requests.lines.dropFirst(before).joined(separator: ", ")
    let responses = operation.steps.lines.count { $0.hasPrefix("response") }
    return
      "asked for \(asked); the body \(operation.received); responses \(responses), ends \(operation.ends.count)"
  }

  private func cancelledPaused(_ rig: HopRig) -> String {
    let operation = rig.operation("/silent")
    let before = rig.network.server.requests.count
    operation.start()
    rig.wait { rig.network.server.requests.count > before }
    operation.pause()
    operation.cancel()
    rig.settle { operation.ends.count > 0 }
    return operation.text
  }
}

/// Returns the delegate's calls, and their place if it is the same for all.
private func places(of steps: [String]) -> String {
  let parts = steps.map { $0.split(separator: ":", maxSplits: 1) }
  let places = Set(parts.map { String($0.last ?? "") })
  return parts.map { String($0[0]) }.joined(separator: " ") + ", all on" + places.sorted().joined(separator: ",")
}

/// The thread named AFNetworking, and the operations on it.
private final class HopRig: Sendable {
  let network: NetworkRig
  let thread: Thread
  let watched = WatchedLoop()
  private let steps = Found<[String]>([])
  private let caller = callingThread

  /// The delegate calls of the first operation.
  var delegateSteps: [String] {
    get { steps.value }
    set { steps.value = newValue }
  }

  init(_ network: NetworkRig, _ thread: Thread) {
    self.network = network
    self.thread = thread
  }

  func prepare() {
    let isReady = network.bench.flag()
    _ = try? thread.perform { [self] in
      watched.watch()
      isReady.set()
    }
    isReady.wait()
  }

  func finish() {
    try? thread.performAndWait(timeout: .seconds(5)) { [self] in watched.unwatch() }
  }

  @discardableResult
  func wait(_ isTrue: () -> Bool) -> Bool { network.bench.meeting.wait(until: isTrue) }

  /// Waits until a condition holds, and then until the thread has performed all its work.
  func settle(_ isTrue: () -> Bool) {
    wait(isTrue)
    let isDone = network.bench.flag()
    _ = try? thread.perform { isDone.set() }
    isDone.wait()
  }

  var threads: String {
    Set([caller, watched.threadID, network.loader.threadID]).count == 3 ? "three different ones" : "the same ones"
  }

  func operation(_ path: String) -> HopOperation {
    HopOperation(network.server.address(path), network.bench.meeting) { [watched] in
      watched.isHere ? Thread.current.name ?? "a thread without a name" : "another thread"
    }
  }
}
