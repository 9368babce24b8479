// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopSystem
internal import RunLoopLibC
package import RunLoopCore

/// A source that calls its handler when the process gets a signal.
///
/// The process's signal handler only counts and makes a descriptor readable; the source's handler runs on a loop's
/// thread, in a pass, and may do anything. Any number of sources may wait for one signal, each in any number of modes
/// of any number of loops, and each of them is notified of every signal. Signals that arrive before a source is in a
/// mode are kept for it.
///
/// A signal to the process reaches it if at least one thread does not block it; the threads of Dispatch block most, the
/// main thread none unless the program says so.
///
/// The first source of a signal replaces the process's action for it. The last source to end puts that action back,
/// unless other code has replaced it meanwhile. The former action is not called in between. A child of a fork gets the
/// actions back that were there before the sources.
///
/// The nearest relative in Dispatch is `DispatchSourceSignal`, which leaves the action in place.
public final class SignalSource: Sendable {
  /// The signals that arrived since the handler was last called.
  public struct Event: Hashable, Sendable {
    /// The signal's number.
    public let signal: Int32
    /// How many times the process's handler ran.
    ///
    /// The kernel keeps one of each signal below `SIGRTMIN` and every one of the others.
    public var count: Int
    /// The process that sent the latest signal, if a process did.
    public let sender: Int32?
    /// The real user of that process.
    public let user: UInt32?
    /// The value of the latest signal, if it was sent with a value, as by `sigqueue`.
    public let value: Int64?
    /// The latest one's cause: `SI_USER`, `SI_QUEUE` and so on.
    public let code: Int32
  }

  /// The signal's number.
  public let signal: Int32

  let loopRegistration: LoopRegistration
  private let registration: SignalRegistration
  private let handler: HandlerBox<Call>

  private struct Call: Sendable {
    let body: @Sendable (SignalSource, Event) -> Void
  }

  private let endsWithLoop: Bool

  /// Makes a source that is in no mode; from now on it counts its signal.
  ///
  /// - Parameters:
  ///   - signal: The signal's number, such as `SIGTERM`.
  ///   - handler: Called on a loop's thread with the signals that arrived. It is released when the source is invalid
  ///     and no call-out runs.
  /// - Throws: ``SignalError/cannotBeHandled(signal:)`` for `SIGKILL`, `SIGSTOP`, for a number that is not a signal,
  ///   and for signals that report a fault of the thread itself, such as `SIGSEGV`: it would run into the same fault
  ///   again; ``SignalError/system(signal:_:)`` if the system has no descriptor or memory left.
  ///
  /// Can be called from any thread.
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

  /// Whether the source can still be added and called.
  ///
  /// Can be used from any thread.
  public var isValid: Bool { loopRegistration.isOpen }

  /// Ends the source permanently: it leaves all modes of all loops and is not called again.
  ///
  /// The last source of a signal puts the former action back. The handler is released at once, or when its running
  /// call-out has returned. Can be called from any thread. Calling it again has no effect.
  public func invalidate() {
    guard loopRegistration.isOpen else { return }
    // Before the descriptor can be closed.
    registration.stop()
    guard loopRegistration.close() else { return }
    handler.take()
  }
}

extension SignalSource: RegisteredSource {
  func serve() {
    guard let descriptor = loopRegistration.opened else { return }
    // The descriptor before the count: see the handler. Another loop may have been faster.
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
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String { itemDescription(self, "signal = \(signal)") }
}
