// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

extension RunLoop {
  /// A run of a loop inside a foreign one: GLib's, libuv's, Qt's, X11's, or any that waits for descriptors.
  ///
  /// The foreign loop, called the host, waits for ``descriptor`` beside its own descriptors and calls ``service()``
  /// when it is readable, or at ``nextDeadline``:
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
  /// A guest is a run that is split where it would sleep. Between two calls of ``service()`` the loop is asleep in its
  /// mode. Everything that would end its sleep makes the descriptor readable until the guest has been serviced: a
  /// block, a wake-up, a stop, a timer that is added or moved, a message, or a descriptor of the loop that is ready.
  /// All of these may come from any thread, and from the host's own call-outs. Nothing is lost, whether the host waits
  /// at that moment or not.
  ///
  /// The loop holds the guest until ``invalidate()``, or until the loop's thread ends. Use a guest on the loop's own
  /// thread only.
  ///
  /// While the host calls out, the loop may be run as usual, as a nested run. A call-out of the loop that runs the host
  /// again, such as a dialogue, can make and invalidate another guest: it relates to the first guest as a nested run
  /// relates to the run around it. A guest that is made in a call-out of the loop must be invalidated before the
  /// call-out returns.
  public final class Guest: @unchecked Sendable {
    // Sendable: the variables belong to the loop's thread.

    /// What a guest is about to do.
    enum State {
      /// The gate is open, and a pass follows.
      case ready
      /// The observers were notified of a wait, which is in progress or over.
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
    /// Whether the guest was made without anybody asking: it represents one run of a loop that is served without a
    /// call.
    let isAutomatic: Bool
    var state = State.ready
    /// Whether the entry observers have been called.
    var hasEntered = false
    /// Whether the guest ends as soon as no call-out of the loop is running.
    var isEnding = false
    /// The guest around this one, which was made in one of its call-outs.
    let outerGuest: Guest?
    /// The sleep of the run around this one, which is suspended meanwhile.
    var outerSleep: HostedSleep?
    let outerRun: Run
    let outerMode: UInt
    let outerStop: StopFlag.State
    let outerWord: WakeState
    let wasServedElsewhere: Bool
    /// Whose guest the loop was before.
    let outerHost: crl_host
    /// Where the guest was made.
    let origin: Origin

    /// Makes the calling thread's loop a guest in a mode, which is made if it does not exist.
    ///
    /// The descriptor is readable from the start: the first ``service()`` calls the entry observers and makes the first
    /// pass.
    ///
    /// - Parameters:
    ///   - mode: The mode that is served.
    ///   - signalsDeadlines: Whether the descriptor becomes readable at deadlines too, for a host that keeps no time,
    ///     or counts only milliseconds. It costs one more descriptor, and a system call when the next deadline changes.
    /// - Throws: ``RunLoopError/cannotBeHosted(_:)`` if the system has no descriptor left,
    ///   ``RunLoopError/notAMode(_:)``, ``RunLoopError/loopHasEnded``; ``RunLoopError/hasHost`` if the loop already
    ///   waits in another library's loop.
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
      // The maker of a guest decides who serves the loop, so an automatic host gives way.
      if loop.hostLink != nil { loop.removeHost() }
      self.init(of: loop, mode, table, at: gate, isAutomatic: false, from: origin)
      loop.mainService?.guestBegins(of: loop, in: mode)
      gate.open()
    }

    /// Makes the calling thread's loop a guest of the loop that is otherwise its host, for one run of that loop; nil if
    /// the loop has ended, is ending, or was made a guest explicitly.
    package convenience init?(automaticAt gate: any SleepGate, mode: Mode) {
      let loop = RunLoop.current
      guard !loop.stopFlag.isEnding, !loop.hasExplicitGuest else { return nil }
      guard let table = loop.enterableMode(mode, making: true), !loop.takesNoItems else { return nil }
      self.init(of: loop, mode, table, at: gate, isAutomatic: true, from: .unknown)
      gate.open()
    }

    /// Lets the calling thread's loop sleep while a call-out of it, or of its host, lets the host wait; nil if there is
    /// something to do instead.
    ///
    /// No observer is called, and nothing is served: a run that polls does that after ``endSleep()``.
    package convenience init?(sleepingAt gate: any SleepGate, in mode: Mode) {
      let loop = RunLoop.current
      guard !loop.stopFlag.isEnding, let table = loop.enterableMode(mode, making: true), !loop.takesNoItems else {
        return nil
      }
      self.init(of: loop, mode, table, at: gate, isAutomatic: true, from: .unknown)
      noteHost(outerHost)
      state = .servicing
      guard loop.fallAsleep(table, at: gate) else {
        finish()
        return nil
      }
      state = .waiting
    }

    private init(
      of loop: RunLoop, _ mode: Mode, _ table: ModeState, at gate: any SleepGate, isAutomatic: Bool, from origin: Origin
    ) {
      self.origin = origin
      self.gate = gate
      self.isAutomatic = isAutomatic
      self.mode = mode
      self.loop = loop
      self.table = table
      loop.tellUnreadItem()
      loop.forgetOtherLoop()
      outerGuest = loop.guest
      outerSleep = loop.suspendHostedSleep()
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

// What a host waits for.
extension RunLoop.Guest {
  /// The descriptor that the host watches: it is readable when ``service()`` is to be called, and stays readable until
  /// then.
  ///
  /// It may be watched level-triggered or edge-triggered, with `poll`, `select` or in an epoll set; an epoll set that
  /// contains it must not be among the loop's own descriptors. The host does not read from it. It is −1 once the guest
  /// is invalid.
  public var descriptor: Int32 { (gate as? Gate)?.descriptor ?? -1 }

  /// The time at which ``service()`` is to be called even if the descriptor is not readable; nil means never.
  ///
  /// It is not in the future if the guest is to be serviced now. It changes only when the loop is serviced or run, so
  /// the host need not ask for it at any other time. It is also nil while the loop is being serviced, or run in a
  /// call-out of the host.
  public var nextDeadline: SuspendingClock.Instant? {
    guard isBetweenServices else { return nil }
    guard let sleep = loop.hostedSleep else { return loop.now }
    return sleep.deadline == .never ? nil : sleep.deadline.instant
  }

  /// How long the host may wait.
  ///
  /// Zero means that ``service()`` is to be called now, and nil that the host may wait indefinitely.
  public var timeout: Duration? {
    nextDeadline.map { max(.zero, loop.now.duration(to: $0)) }
  }

  /// For how many milliseconds the host may wait, rounded up, as `poll` counts them.
  ///
  /// −1 means indefinitely. The corresponding libuv function is `uv_backend_timeout`.
  public var timeoutMilliseconds: Int32 {
    guard let timeout else { return -1 }
    let nanoseconds = Int64(saturating: timeout)
    return Int32(clamping: nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1))
  }

  /// Whether ``service()`` would find a reason for a pass, as far as the loop knows without looking at descriptors.
  package var isDue: Bool {
    guard isBetweenServices else { return false }
    guard let sleep = loop.hostedSleep else { return true }
    return sleep.deadline != .never && sleep.deadline <= loop.tickNow
  }

  /// Whether the guest can still be serviced.
  public var isValid: Bool { state != .ended }
}
