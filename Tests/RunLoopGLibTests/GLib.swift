// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// The GLib functions that the tests call.
enum GLib {
  typealias Pointer = UnsafeMutableRawPointer
  typealias Callback = @convention(c) (Pointer?) -> Int32
  typealias Release = @convention(c) (Pointer?) -> Void
  typealias Poll = @convention(c) (Pointer?, UInt32, Int32) -> Int32

  static let isInstalled = dlopen("libglib-2.0.so.0", RTLD_NOW) != nil

  static func function<Function>(_ name: String, _: Function.Type = Function.self) -> Function {
    guard let library = dlopen("libglib-2.0.so.0", RTLD_NOW), let found = dlsym(library, name) else {
      fatalError("GLib has no \(name)")
    }
    return unsafeBitCast(found, to: Function.self)
  }

  static func iterate(_ context: Pointer, waits: Bool = true) {
    let iteration: @convention(c) (Pointer?, Int32) -> Int32 = function("g_main_context_iteration")
    _ = iteration(context, waits ? 1 : 0)
  }
}

/// A GLib context and the operations that the tests need.
///
/// Only `add` and `quit()` may be called from other threads.
final class Context: @unchecked Sendable {
  let pointer: GLib.Pointer
  /// The addresses of the running loops, the innermost last.
  private let loops = Box<[UInt]>([])

  init() {
    let new: @convention(c) () -> GLib.Pointer = GLib.function("g_main_context_new")
    let push: @convention(c) (GLib.Pointer) -> Void = GLib.function("g_main_context_push_thread_default")
    pointer = new()
    push(pointer)
  }

  /// Runs the context until `quit()` is called; calls may nest.
  func run() {
    let new: @convention(c) (GLib.Pointer, Int32) -> GLib.Pointer = GLib.function("g_main_loop_new")
    let run: @convention(c) (GLib.Pointer) -> Void = GLib.function("g_main_loop_run")
    let loop = new(pointer, 0)
    loops.update { $0.append(UInt(bitPattern: loop)) }
    run(loop)
    loops.update { _ = $0.removeLast() }
  }

  /// Ends the innermost run; can be called from any thread.
  func quit() { quit(depth: loops.value.count) }

  /// Ends the run at a nesting depth if it has begun; can be called from any thread.
  func quit(depth: Int) {
    let quit: @convention(c) (GLib.Pointer) -> Void = GLib.function("g_main_loop_quit")
    let running = loops.value
    guard depth > 0, depth <= running.count, let loop = GLib.Pointer(bitPattern: running[depth - 1]) else { return }
    quit(loop)
  }

  /// Calls a body until it returns false, from an idle source or after a delay in milliseconds.
  func add(after milliseconds: UInt32? = nil, priority: Int32 = 0, _ body: @escaping () -> Bool) {
    let idle: @convention(c) () -> GLib.Pointer = GLib.function("g_idle_source_new")
    let timeout: @convention(c) (UInt32) -> GLib.Pointer = GLib.function("g_timeout_source_new")
    let setPriority: @convention(c) (GLib.Pointer, Int32) -> Void = GLib.function("g_source_set_priority")
    let set: @convention(c) (GLib.Pointer, GLib.Callback, GLib.Pointer?, GLib.Release?) -> Void =
      GLib.function("g_source_set_callback")
    let attach: @convention(c) (GLib.Pointer, GLib.Pointer) -> UInt32 = GLib.function("g_source_attach")
    let unref: @convention(c) (GLib.Pointer) -> Void = GLib.function("g_source_unref")
    let source = milliseconds.map(timeout) ?? idle()
    setPriority(source, priority)
    set(
      source, { Call.at($0).body() ? 1 : 0 }, Unmanaged.passRetained(Call(body)).toOpaque(),
      { if let call = $0 { Unmanaged<Call>.fromOpaque(call).release() } })
    _ = attach(source, pointer)
    unref(source)
  }

  private final class Call {
    let body: () -> Bool

    init(_ body: @escaping () -> Bool) {
      self.body = body
    }

    static func at(_ pointer: GLib.Pointer?) -> Call {
      guard let pointer else { fatalError("GLib has lost a call") }
      return Unmanaged<Call>.fromOpaque(pointer).takeUnretainedValue()
    }
  }
}

/// Runs a body on a new thread with its own context, and waits for the thread to end.
func onThread(_ body: @escaping @Sendable (Context) throws -> Void) throws {
  let failure = Failure()
  let thread = Thread {
    do { try body(Context()) } catch { failure.error = error }
  }
  try thread.tryStart()
  try thread.join()
  if let error = failure.error { throw error }
}

private final class Failure: @unchecked Sendable {
  // Sendable: it is read only after the thread has ended.
  var error: (any Error)?
}
