// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopSystem
internal import RunLoopLibC
package import RunLoopCore

/// A source that calls its handler when the process receives a signal.
///
/// The process's signal handler only increments a count and makes a descriptor readable. The source's handler runs on
/// a loop's thread, in a pass, and can do anything. Any number of sources can wait for the same signal, each in any
/// number of modes of any number of loops, and each of them is notified of every signal. Signals that arrive before a
/// source is in a mode are kept for it.
///
/// A signal sent to the process is delivered if at least one thread does not block it. The threads of Dispatch block
/// most signals; the main thread blocks none by default.
///
/// The first source of a signal replaces the process's action for it, and the last one restores it, unless other code
/// has replaced the action in the meantime. The original action is not called in between. In a forked child, the
/// original actions are restored.
///
/// The closest type in Dispatch is `DispatchSourceSignal`, which does not replace the action.
public final class SignalSource: Sendable {
  /// The signals that have arrived since the handler was last called.
  public struct Event: Hashable, Sendable {
    /// The signal number.
    public let signal: Int32
    /// The number of times the process's signal handler has run.
    ///
    /// The kernel queues only one instance of each signal below `SIGRTMIN`, and every instance of the others.
    public var count: Int
    /// The process that sent the most recent signal, or `nil` if it was not sent by a process.
    public let sender: Int32?
    /// The real user ID of that process.
    public let user: UInt32?
    /// The value of the most recent signal if it was sent with a value, as by `sigqueue`.
    public let value: Int64?
    /// The cause of the most recent signal, such as `SI_USER` or `SI_QUEUE`.
    public let code: Int32
  }

  /// The signal number.
  public let signal: Int32

  let loopRegistration: LoopRegistration
  private let registration: SignalRegistration
  private let handler: HandlerBox<Call>

  private struct Call: Sendable {
    let body: @Sendable (SignalSource, Event) -> Void
  }

  private let endsWithLoop: Bool

  /// Creates a source that is in no mode and starts counting its signal.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - signal: The signal number, such as `SIGTERM`.
  ///   - handler: Called on a loop's thread with the signals that arrived. It is released when the source is invalid
  ///     and no call-out is running.
  /// - Throws: ``SignalError/cannotBeHandled(signal:)`` for `SIGKILL` and `SIGSTOP`, for numbers that are not signals,
  ///   and for signals that report a fault of the thread itself, such as `SIGSEGV`, because the thread would repeat
  ///   the fault; ``SignalError/system(signal:_:)`` if the system has no descriptor or memory left.
  public convenience init(
    signal: Int32, handler: @escaping @Sendable (SignalSource, Event) -> Void
  ) throws(SignalError) {
    try self.init(signal, endsWithLoop: false, handler)
  }

  init(
    _ signal: Int32, endsWithLoop: Bool, _ handler: @escaping @Sendable (SignalSource, Event) -> Void
  ) throws(SignalError) {
    guard SignalRegistration.accepts(signal) else { throw .cannotBeHandled(signal: signal) }
    do throws(SystemError) {
      let descriptor = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
      registration = try SignalRegistration(signal, descriptor.number)
      loopRegistration = LoopRegistration(descriptor)
    } catch {
      throw .system(signal: signal, error)
    }
    self.signal = signal
    self.handler = HandlerBox(Call(body: handler))
    self.endsWithLoop = endsWithLoop
  }

  deinit {
    invalidate()
  }

  /// Whether the source is valid, so that it can be added to a loop and called.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { loopRegistration.isOpen }

  /// Permanently invalidates the source: it leaves all modes of all loops and is not called again.
  ///
  /// The last source of a signal restores the original action. The handler is released at once, or when a running
  /// call-out has returned. Can be called from any thread. Calling it again has no effect.
  public func invalidate() {
    guard loopRegistration.isOpen else { return }
    // Stop before the descriptor can be closed.
    registration.stop()
    guard loopRegistration.close() else { return }
    handler.take()
  }
}

extension SignalSource: RegisteredSource {
  func serve() {
    guard let descriptor = loopRegistration.opened else { return }
    // Read the descriptor before the count; the signal handler updates them in the opposite order. Another loop may
    // have served the source first.
    _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(descriptor.number) }
    guard let event = registration.take(), let handler = handler.held else { return }
    noteCall(of: handler)
    handler.body(self, event)
  }

  func hasLeft() { if endsWithLoop { invalidate() } }

  package var keepAliveKind: KeepAliveKind { .signal }
  package var keepAliveDetail: String { "signal \(signal)" }
}

extension SignalSource: CustomDebugStringConvertible {
  /// The source's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String { itemDescription(self, "signal = \(signal)") }
}
