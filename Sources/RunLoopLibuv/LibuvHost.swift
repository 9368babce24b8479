// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// Serves a thread's run loop in a libuv loop, such as Node's in an addon, or that of a C program.
///
/// ```swift
/// try LibuvHost.attach(to: loop)  // a uv_loop_t *
/// uv_run(loop, UV_RUN_DEFAULT)
/// ```
///
/// Once attached, timers, sources, sockets and blocks are served while libuv waits; on the main thread, so are the
/// main dispatch queue and `@MainActor`.
///
/// Nothing polls, because libuv also waits for the loop's descriptor. Each turn of libuv's loop makes at most one
/// pass.
///
/// A libuv loop cannot be run in its own callbacks, so there are no nested runs. Use a host only on its own thread.
/// Before libuv's loop or the thread ends, call ``detach()`` and let the loop make one more turn, which closes the
/// handle. A forked child has no host.
public final class LibuvHost: @unchecked Sendable {
  // Sendable: the variables are used only on the loop's thread.

  private let loop: RunLoop
  private let guest: RunLoop.Guest
  private let library: Libuv
  private let onStop: () -> Void
  /// The `uv_poll_t`.
  private var handle: Libuv.Pointer?

  private init(_ library: Libuv, mode: RunLoop.Mode, onStop: @escaping () -> Void) throws(LibuvHostError) {
    do throws(RunLoopError) {
      guest = try RunLoop.Guest(mode: mode, signalsDeadlines: true)
    } catch {
      throw .runLoop(error)
    }
    guest.noteHost(CRL_HOST_LIBUV)
    loop = RunLoop.current
    self.library = library
    self.onStop = onStop
  }

  /// Attaches the calling thread's loop to a libuv loop, which serves it from then on.
  ///
  /// Within a call-out of the loop, such as a block or a task of the main actor, the host must be detached again before
  /// the call-out returns; otherwise the program is stopped. To attach for longer, call this outside the loop's runs.
  ///
  /// - Parameters:
  ///   - uvLoop: A `uv_loop_t *` that the calling thread runs.
  ///   - mode: The mode whose items are served.
  ///   - keepsAlive: Whether an attached host keeps libuv's loop running, as any active handle does. If false, libuv's
  ///     loop ends when it has no other active handles, regardless of what the run loop contains.
  ///   - onStop: Called on the thread when the run loop is stopped, for example by `RunLoop.stop()`. Call `uv_stop`
  ///     here. By default, the loop continues.
  /// - Returns: The host, which does not need to be retained.
  @discardableResult
  public static func attach(
    to uvLoop: UnsafeMutableRawPointer, mode: RunLoop.Mode = .default, keepsAlive: Bool = true,
    onStop: @escaping () -> Void = {}
  ) throws(LibuvHostError) -> LibuvHost {
    let library = try Libuv.found()
    guard let place = RunLoop.current.attachment(HostPlace.self, orMake: HostPlace.init)?.attachment else {
      throw .runLoop(.loopHasEnded)
    }
    guard place.host == nil else { throw .isAttached }
    let host = try LibuvHost(library, mode: mode, onStop: onStop)
    do throws(LibuvHostError) {
      try host.enter(uvLoop, keepsAlive: keepsAlive)
    } catch {
      host.guest.invalidate()
      throw error
    }
    place.host = host
    return host
  }

  /// The host of the calling thread's loop, or nil if there is none.
  public static var current: LibuvHost? { RunLoop.currentIfMade?.attachment(HostPlace.self)?.host }

  /// Detaches the loop from libuv's.
  ///
  /// The loop can then be run, or attached again.
  ///
  /// The handle is closed in libuv's next turn. In a call-out of the loop, this takes full effect when the call-outs
  /// have returned. Calling it again has no effect.
  ///
  /// - Precondition: The calling thread is the host's.
  public func detach() {
    loop.requireOwnThread()
    leave()
    guest.invalidate()
  }

  private func enter(_ uvLoop: Libuv.Pointer, keepsAlive: Bool) throws(LibuvHostError) {
    let handle = Libuv.Pointer.allocate(byteCount: library.handleSize(Libuv.pollHandle), alignment: 16)
    var code = library.pollInit(uvLoop, handle, guest.descriptor)
    guard code == 0 else {
      handle.deallocate()
      throw .call("uv_poll_init", code)
    }
    // The first member of a handle is reserved for the program's data.
    handle.storeBytes(of: Unmanaged.passRetained(self).toOpaque(), as: Libuv.Pointer.self)
    self.handle = handle
    code = library.pollStart(handle, Libuv.readable) { handle, _, _ in LibuvHost.of(handle).serve() }
    guard code == 0 else {
      leave()
      throw .call("uv_poll_start", code)
    }
    if !keepsAlive { library.unref(handle) }
  }

  /// Closes the handle.
  private func leave() {
    guard let handle else { return }
    self.handle = nil
    loop.attachment(HostPlace.self)?.host = nil
    library.close(handle) { handle in
      guard let handle else { return }
      Unmanaged<LibuvHost>.fromOpaque(handle.load(as: Libuv.Pointer.self)).release()
      handle.deallocate()
    }
  }

  private func serve() {
    guard loop.isCurrent, guest.isValid else { return }
    if guest.service() == .stopped { onStop() }
  }

  private static func of(_ handle: Libuv.Pointer?) -> LibuvHost {
    guard let handle else { fatalError("libuv has lost a handle") }
    return Unmanaged<LibuvHost>.fromOpaque(handle.load(as: Libuv.Pointer.self)).takeUnretainedValue()
  }
}

/// Attaches a host to its loop.
private final class HostPlace: LoopAttachment, @unchecked Sendable {
  // Sendable: the variable is used only on the loop's thread.
  var host: LibuvHost?

  /// Does nothing, because libuv's loop may already have been freed.
  func loopDidEnd() {}
}
