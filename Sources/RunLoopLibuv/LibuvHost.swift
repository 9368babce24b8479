// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// Serves a thread's run loop in a loop of libuv's: Node's, in an addon, or that of a program in C.
///
/// ```swift
/// try LibuvHost.attach(to: loop)  // a uv_loop_t *
/// uv_run(loop, UV_RUN_DEFAULT)
/// ```
///
/// From then on timers, sources, sockets and blocks, on the main thread also the main dispatch queue and `@MainActor`,
/// are served while libuv waits. Nothing polls: libuv waits for the loop's descriptor, too. Each turn of libuv's loop
/// makes one pass at most.
///
/// Libuv's loops cannot be run within their own callbacks, so there are no nested runs. Use a host on its own thread
/// only. Before libuv's loop or the thread ends, call ``detach()``, and let the loop make one more turn, which closes
/// the handle. A forked child has no host.
public final class LibuvHost: @unchecked Sendable {
  // Sendable: the variables belong to the loop's thread.

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

  /// Serves the calling thread's loop in a loop of libuv's from now on.
  ///
  /// - Parameters:
  ///   - uvLoop: A `uv_loop_t *` that the calling thread runs.
  ///   - mode: The mode whose items are served.
  ///   - keepsAlive: Whether libuv's loop goes on as long as the host is attached, as it does for a handle of its own;
  ///     otherwise it ends when nothing of libuv's is left, whatever the run loop has.
  ///   - onStop: Called on the thread when the run loop is stopped, for example by `RunLoop.stop()`: a program calls
  ///     `uv_stop` there. By default the loop goes on.
  /// - Returns: The host, which need not be kept.
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

  /// The host of the calling thread's loop, if there is one.
  public static var current: LibuvHost? { RunLoop.currentIfMade?.attachment(HostPlace.self)?.host }

  /// Serves the loop in libuv's no longer; the loop can be run, or attached again.
  ///
  /// The handle is closed in libuv's next turn. If this is called in a call-out of the loop, the guest ends when the
  /// call-outs are over. Calling it again has no effect.
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
    // The first member of a handle is the program's.
    handle.storeBytes(of: Unmanaged.passRetained(self).toOpaque(), as: Libuv.Pointer.self)
    self.handle = handle
    code = library.pollStart(handle, Libuv.readable) { handle, _, _ in LibuvHost.of(handle).serve() }
    guard code == 0 else {
      leave()
      throw .call("uv_poll_start", code)
    }
    if !keepsAlive { library.unref(handle) }
  }

  /// Leaves libuv's loop.
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

/// The place of a loop's host.
private final class HostPlace: LoopAttachment, @unchecked Sendable {
  // Sendable: the variable belongs to the loop's thread.
  var host: LibuvHost?

  /// Libuv's loop may be gone too: what is left in it is left alone.
  func loopDidEnd() {}
}
