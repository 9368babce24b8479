// SPDX-License-Identifier: Apache-2.0

import CRunLoopGLib
import CRunLoopRecorder
public import RunLoopCore

/// Serves a thread's run loop in a GLib context, however the context is run.
///
/// ```swift
/// try GLibHost.attach()
/// g_application_run(application, 0, nil)
/// ```
///
/// The context may be run by `g_application_run`, by `g_main_loop_run`, or by a dialog inside a call-out.
///
/// Once attached, timers, sources, sockets, blocks, the main dispatch queue and `@MainActor` are served on the main
/// thread while GLib waits. Nothing polls, because GLib also waits for the loop's descriptors.
///
/// **Order.** Each turn of the context makes at most one pass of the loop, at ``priority``. At the default of 0, the
/// pass runs after high-priority input, before GTK's layout (110) and drawing (120), and before idle sources (200). A
/// loop that has been busy for 8 ms without a break takes turns with GLib's idle sources until it has been idle once,
/// so that windows are still drawn.
///
/// **Nested loops.** A call-out of the loop or of GLib may run the context. The loop is then served in the mode of
/// ``run(in:_:)``, or that of ``attach(to:priority:mode:onStop:)``. Inside a call-out of the loop, each turn is a
/// nested run that polls. As in any nested run, a block of the main dispatch queue that runs the context blocks that
/// queue meanwhile.
///
/// Use a host only on its own thread.
///
/// It stays attached until ``detach()`` or until the thread ends. A forked child has none.
public final class GLibHost: @unchecked Sendable {
  // Sendable: the variables are used only on the loop's thread.

  /// The priority of the loop's turns in GLib's terms: a smaller value runs earlier; the default is 0.
  public let priority: Int32

  private let loop: RunLoop
  private let mode: RunLoop.Mode
  private let guest: RunLoop.Guest
  /// The descriptor that GLib waits for while a call-out of the loop runs the context.
  private let nestedGate: Gate
  private let onStop: () -> Void
  private var source: OpaquePointer?
  /// The sleep of the loop in a nested wait.
  private var nestedSleep: RunLoop.Guest?
  /// Whether the program has been notified that the thread is ending.
  private var hasToldOfEnd = false
  /// The mode of the innermost ``run(in:_:)``.
  private var innerMode: RunLoop.Mode?
  private var fairness: Fairness

  private init(priority: Int32, mode: RunLoop.Mode, onStop: @escaping () -> Void) throws(GLibHostError) {
    do throws(RunLoopError) {
      guest = try RunLoop.Guest(mode: mode, signalsDeadlines: true)
    } catch {
      throw .runLoop(error)
    }
    do throws(SystemError) {
      nestedGate = try Gate(keepsTime: true)
    } catch {
      guest.invalidate()
      throw .runLoop(.cannotBeHosted(error))
    }
    guest.noteHost(CRL_HOST_GLIB)
    loop = RunLoop.current
    self.priority = priority
    self.mode = mode
    self.onStop = onStop
    fairness = Fairness(priority: priority)
  }

  /// Attaches the calling thread's loop to a GLib context, which serves it from then on.
  ///
  /// Within a call-out of the loop, such as a block or a task of the main actor, the host must be detached again before
  /// the call-out returns; otherwise the program is stopped. To attach for longer, call this outside the loop's runs.
  ///
  /// - Parameters:
  ///   - context: A `GMainContext *`, which the calling thread must be running. The default is `nil`, which means the
  ///     thread's default context; for the main thread, that is GLib's.
  ///   - priority: The priority of the loop's turns in GLib's terms.
  ///   - mode: The mode whose items are served.
  ///   - onStop: Called on the thread when the loop is stopped, for example by `RunLoop.stop()`. End the GLib loop
  ///     here, with `g_application_quit` or `g_main_loop_quit`. Otherwise the loop continues, and a stopped resident
  ///     thread does not end.
  /// - Returns: The host, which does not need to be retained.
  @discardableResult
  public static func attach(
    to context: UnsafeMutableRawPointer? = nil, priority: Int32 = 0, mode: RunLoop.Mode = .default,
    onStop: @escaping () -> Void = {}
  ) throws(GLibHostError) -> GLibHost {
    try openLibrary()
    guard let context = context ?? threadContext else { throw .noContext }
    guard crg_may_run(context) != 0 else { throw .contextIsBusy }
    guard let place = RunLoop.current.attachment(HostPlace.self, orMake: HostPlace.init)?.attachment else {
      throw .runLoop(.loopHasEnded)
    }
    guard place.host == nil else { throw .isAttached }
    let host = try GLibHost(priority: priority, mode: mode, onStop: onStop)
    place.host = host
    host.source = withUnsafePointer(to: SourceCalls.all) {
      crg_attach(
        context, priority, host.guest.descriptor, host.nestedGate.descriptor, $0,
        Unmanaged.passRetained(host).toOpaque())
    }
    return host
  }

  /// The host of the calling thread's loop, or nil if there is none.
  public static var current: GLibHost? { RunLoop.currentIfMade?.attachment(HostPlace.self)?.host }

  /// Detaches the loop from its context.
  ///
  /// The loop can then be run, or attached again.
  ///
  /// In a call-out of the loop, this takes full effect when the call-outs have returned. Calling it again has no
  /// effect.
  ///
  /// - Precondition: The calling thread is the host's.
  public func detach() {
    loop.requireOwnThread()
    leave()
    guest.invalidate()
  }

  /// Removes the source from the context.
  fileprivate func leave() {
    guard let source else { return }
    self.source = nil
    loop.attachment(HostPlace.self)?.host = nil
    endNestedSleep()
    crg_detach(source)
  }

  /// Runs a body that runs the context, such as a dialog, and serves the loop in another mode meanwhile.
  ///
  /// - Precondition: The calling thread is the host's.
  public func run<Result, Failure: Error>(
    in mode: RunLoop.Mode, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    loop.requireOwnThread()
    precondition(mode != .common, "\"\(mode)\" stands for the common modes and is not a mode itself")
    let before = innerMode
    innerMode = mode
    defer { innerMode = before }
    return try body()
  }

  private static func openLibrary() throws(GLibHostError) {
    var detail = [CChar](repeating: 0, count: 512)
    guard crg_open(&detail, detail.count) == 0 else {
      throw .libraryNotFound(String(decoding: detail.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
    }
  }

  private static var threadContext: UnsafeMutableRawPointer? {
    crg_thread_context() ?? (RunLoop.isMainThread ? crg_main_context() : nil)
  }
}

/// Attaches a host to its loop.
private final class HostPlace: LoopAttachment, @unchecked Sendable {
  // Sendable: the variable is used only on the loop's thread.
  var host: GLibHost?

  func loopDidEnd() { host?.leave() }
}

// Called by the GLib source. All but the first require the loop's thread.
extension GLibHost {
  /// Whether the calling thread is the loop's and the loop is served by this host.
  var isServedHere: Bool { loop.isCurrent && guest.isValid }

  /// Whether GLib is running inside a call-out of the loop or in ``run(in:_:)``.
  var isNested: Bool { innerMode != nil || !guest.isBetweenServices }

  func beginNestedWait() -> Bool {
    endNestedSleep()
    if loop.isEnding {
      // The loop is ending and has nothing to serve, so GLib may wait without a limit.
      tellOfStop()
      return true
    }
    nestedSleep = RunLoop.Guest(sleepingAt: nestedGate, in: innerMode ?? mode)
    return nestedSleep != nil
  }

  func endNestedSleep() {
    guard let sleep = nestedSleep else { return }
    nestedSleep = nil
    if sleep.endSleep() { tellOfStop() }
  }

  /// Notifies the program of a stop, but of the thread's end only once.
  private func tellOfStop() {
    if loop.isEnding {
      guard !hasToldOfEnd else { return }
      hasToldOfEnd = true
    }
    onStop()
  }

  func rest() { fairness.rest() }

  // Without these, a hang in an item of GLib would be shown as a sleep, because the loop is asleep there.

  func willWait() { loop.noteHostWaits() }

  func didWait() { if guest.isValid { loop.noteHostRuns() } }

  /// Makes a pass and returns the priority of the next one.
  func serve() -> Int32 {
    guard isServedHere else { return priority }
    let result = isNested ? loop.run(mode: innerMode ?? mode, for: .zero) : guest.service()
    if result == .stopped { tellOfStop() }
    return fairness.priorityAfterTurn(at: loop.now)
  }
}

/// Makes a permanently busy loop take turns with GLib's idle sources.
private struct Fairness {
  /// The priority of GLib's idle sources.
  private static let idle: Int32 = 200

  let priority: Int32
  private var busySince: SuspendingClock.Instant?

  init(priority: Int32) {
    self.priority = priority
  }

  mutating func rest() { busySince = nil }

  mutating func priorityAfterTurn(at now: SuspendingClock.Instant) -> Int32 {
    let start = busySince ?? now
    busySince = start
    return start.duration(to: now) < .milliseconds(8) ? priority : max(priority, Self.idle)
  }
}

/// The functions that the GLib source calls.
private enum SourceCalls {
  static let all = crg_calls(
    is_on_thread: { SourceCalls.host($0).isServedHere ? 1 : 0 },
    is_nested: { SourceCalls.host($0).isNested ? 1 : 0 },
    will_wait: { SourceCalls.host($0).willWait() },
    did_wait: { SourceCalls.host($0).didWait() },
    begin_wait: { SourceCalls.host($0).beginNestedWait() ? 1 : 0 },
    end_wait: { SourceCalls.host($0).endNestedSleep() },
    rest: { SourceCalls.host($0).rest() },
    serve: { SourceCalls.host($0).serve() },
    release: { if let owner = $0 { Unmanaged<GLibHost>.fromOpaque(owner).release() } })

  private static func host(_ owner: UnsafeMutableRawPointer?) -> GLibHost {
    guard let owner else { fatalError("GLib has lost the owner of a source") }
    return Unmanaged<GLibHost>.fromOpaque(owner).takeUnretainedValue()
  }
}
