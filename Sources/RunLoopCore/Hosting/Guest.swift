// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// A run of a loop inside a foreign loop, such as that of GLib, libuv, Qt or X11, or any loop that waits for
  /// descriptors.
  ///
  /// The foreign loop, called the host, waits for ``descriptor`` along with its own descriptors. It calls
  /// ``service()`` when the descriptor is readable, or at ``nextDeadline``:
  ///
  /// ```swift
  /// let guest = try RunLoop.Guest()
  /// while true {
  ///   var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
  ///   poll(&entry, 1, guest.timeoutMilliseconds)
  ///   guest.service()
  /// }
  /// ```
  ///
  /// A guest is a run that is split where it would sleep. Between two calls of ``service()``, the loop is asleep in
  /// its mode. Everything that would end this sleep makes the descriptor readable until the guest has been serviced: a
  /// block, a wake-up, a stop, an added or moved timer, a message, or a ready descriptor of the loop. All of these may
  /// originate on any thread, or in the host's own call-outs, and none is lost, whether or not the host is waiting at
  /// that moment.
  ///
  /// The loop retains the guest until ``invalidate()`` is called or the loop's thread ends. A guest must only be used
  /// on the loop's own thread.
  ///
  /// During the host's call-outs, the loop can be run as usual, as a nested run. A call-out of the loop that runs the
  /// host again, such as a modal dialog, can create and invalidate another guest, which relates to the first guest as
  /// a nested run relates to the outer run. A guest created in a call-out of the loop must be invalidated before the
  /// call-out returns.
  public final class Guest: @unchecked Sendable {
    // Sendable: the variables are used only on the loop's thread.

    /// The guest's position in its cycle of services.
    enum State {
      /// The gate is open, and a pass follows.
      case ready
      /// Observers were notified of a wait, which is in progress or over.
      case waiting
      /// A pass is being made, or observers are being called.
      case servicing
      case ended
    }

    /// The mode whose items the guest serves.
    public let mode: Mode

    let loop: RunLoop
    let table: ModeState
    var gate: (any SleepGate)?
    /// Whether the library created the guest automatically to represent one run of another loop.
    let isAutomatic: Bool
    /// Whether the guest only sleeps, on behalf of the host of an outer guest.
    let isSleep: Bool
    var state = State.ready
    /// Whether the entry observers have been called.
    var hasEntered = false
    /// Whether the guest ends once no call-out of the loop is running.
    var isEnding = false
    /// The outer guest, if this one was created in one of its call-outs.
    let outerGuest: Guest?
    /// The sleep of the outer run, suspended while this guest exists.
    var outerSleep: HostedSleep?
    let outerRun: Run
    let outerMode: UInt
    let outerStop: StopFlag.State
    let outerWord: WakeState
    let wasServedElsewhere: Bool
    /// The loop's previous kind of host.
    let outerHost: crl_host
    /// Where the guest was created.
    let origin: Origin

    /// Makes the calling thread's loop a guest in a mode, which is created if it does not exist.
    ///
    /// The descriptor is readable from the start: the first ``service()`` calls the entry observers and makes the
    /// first pass.
    ///
    /// - Parameters:
    ///   - mode: The mode to serve. Defaults to the default mode.
    ///   - signalsDeadlines: Whether the descriptor also becomes readable at deadlines, for a host that keeps no time
    ///     or only counts milliseconds. It costs another descriptor, and a system call whenever the next deadline
    ///     changes. Defaults to `false`.
    /// - Throws: ``RunLoopError/cannotBeHosted(_:)`` if no descriptor is available, ``RunLoopError/notAMode(_:)``,
    ///   ``RunLoopError/loopHasEnded``, or ``RunLoopError/hasHost`` if the loop already waits in another library's
    ///   loop.
    @inline(never)
    public convenience init(mode: Mode = .default, signalsDeadlines: Bool = false) throws(RunLoopError) {
      let origin = Origin(site: crl_call_site())
      let loop = RunLoop.current
      guard mode != .common else { throw .notAMode(mode) }
      guard let table = loop.enterableMode(mode, making: true), !loop.takesNoItems else { throw .loopHasEnded }
      guard loop.hostLink.map(\.isAutomatic) ?? true else { throw .hasHost }
      let gate: Gate
      do throws(SystemError) {
        gate = try Gate(keepsTime: signalsDeadlines)
        try loop.makeBell()
      } catch {
        throw .cannotBeHosted(error)
      }
      // An explicit guest determines what serves the loop, so it replaces an automatic host.
      if loop.hostLink != nil { loop.removeHost() }
      self.init(of: loop, mode, table, at: gate, isAutomatic: false, from: origin)
      loop.mainService?.guestBegins(of: loop, in: mode)
      gate.open()
    }

    /// Makes the calling thread's loop a guest of the loop that is otherwise its host, for one run of that loop.
    ///
    /// If the loop is a guest of a third loop, this guest is nested in that one. Returns `nil` if the loop has ended or
    /// is ending.
    package convenience init?(automaticAt gate: any SleepGate, mode: Mode) {
      let loop = RunLoop.current
      guard !loop.stopFlag.isEnding, let table = loop.enterableMode(mode, making: true), !loop.takesNoItems else {
        return nil
      }
      self.init(of: loop, mode, table, at: gate, isAutomatic: true, from: .unknown)
      gate.open()
    }

    /// Puts the calling thread's loop to sleep while one of its own or its host's call-outs lets the host wait.
    ///
    /// Returns `nil` if there is something to do instead. No observer is called, and nothing is served; a run that
    /// polls does that after ``endSleep()``.
    package convenience init?(sleepingAt gate: any SleepGate, in mode: Mode) {
      let loop = RunLoop.current
      guard !loop.stopFlag.isEnding, let table = loop.enterableMode(mode, making: true), !loop.takesNoItems else {
        return nil
      }
      self.init(of: loop, mode, table, at: gate, isAutomatic: true, isSleep: true, from: .unknown)
      noteHost(outerHost)
      state = .servicing
      guard loop.fallAsleep(table, at: gate) else {
        finish()
        return nil
      }
      state = .waiting
    }

    private init(
      of loop: RunLoop, _ mode: Mode, _ table: ModeState, at gate: any SleepGate, isAutomatic: Bool,
      isSleep: Bool = false, from origin: Origin
    ) {
      self.origin = origin
      self.isSleep = isSleep
      self.gate = gate
      self.isAutomatic = isAutomatic
      self.mode = mode
      self.loop = loop
      self.table = table
      loop.tellUnreadItem()
      loop.forgetOtherLoop()
      outerGuest = loop.guest
      outerSleep = loop.suspendHostedSleep()
      loop.innermost.lastLook = .never
      outerRun = loop.innermost
      outerMode = loop.current.exchange(table.address, ordering: .acquiringAndReleasing)
      outerStop = loop.stopFlag.begin()
      outerWord = loop.word.apply(.beginRun).before
      wasServedElsewhere = loop.isServedElsewhere.exchange(isAutomatic, ordering: .acquiringAndReleasing)
      loop.innermost = Run(
        mode: table, polls: true, returnsAfterSource: true, isServedByHost: isAutomatic, depth: outerRun.depth + 1)
      loop.noteRun()
      let host = isAutomatic ? CRL_HOST_CORE_FOUNDATION : CRL_HOST_PROGRAM
      outerHost = crl_host(rawValue: crl_face_set_host(loop.recorder, host.rawValue))
      loop.hasRun = true
      loop.guest = self
    }
  }
}

// The descriptor and the deadline that the host waits for.
extension RunLoop.Guest {
  /// The descriptor that the host watches, which is readable whenever ``service()`` must be called.
  ///
  /// The host can watch it level-triggered or edge-triggered, with `poll`, `select` or epoll, but an epoll set that
  /// contains it must not be one of the loop's own descriptors. The host must not read from it. The value is −1 once
  /// the guest is invalid.
  public var descriptor: Int32 { (gate as? Gate)?.descriptor ?? -1 }

  /// When ``service()`` must be called even if the descriptor is not readable, or `nil` for never.
  ///
  /// If the guest must be serviced now, the value is not in the future. It changes only when the loop is serviced or
  /// run, so the host need not read it at any other time. It is also `nil` while the loop is being serviced, or run in
  /// a call-out of the host.
  public var nextDeadline: SuspendingClock.Instant? {
    guard isBetweenServices else { return nil }
    guard let sleep = loop.hostedSleep else { return loop.now }
    return sleep.deadline == .never ? nil : sleep.deadline.instant
  }

  /// How long the host may wait.
  ///
  /// Zero means that ``service()`` must be called now; `nil` means that the host may wait indefinitely.
  public var timeout: Duration? {
    nextDeadline.map { max(.zero, loop.now.duration(to: $0)) }
  }

  /// How long the host may wait in milliseconds, rounded up, as a timeout for `poll`.
  ///
  /// −1 means indefinitely. The corresponding libuv function is `uv_backend_timeout`.
  public var timeoutMilliseconds: Int32 {
    guard let timeout else { return -1 }
    let nanoseconds = Int64(saturating: timeout)
    return Int32(clamping: nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1))
  }

  /// Whether ``service()`` would find a reason for a pass, as far as is known without polling descriptors.
  package var isDue: Bool {
    guard isBetweenServices else { return false }
    guard let sleep = loop.hostedSleep else { return true }
    return sleep.deadline != .never && sleep.deadline <= loop.tickNow
  }

  /// Whether the guest can still be serviced, initially `true`.
  public var isValid: Bool { state != .ended }
}
