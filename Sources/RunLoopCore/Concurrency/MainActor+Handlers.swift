// SPDX-License-Identifier: Apache-2.0

extension MainActor {
  /// Returns a handler that runs on the main actor, for an item of the main loop or a block performed on it.
  ///
  /// ```Swift
  /// @MainActor final class Clock {
  ///   var text = ""
  ///   func start() {
  ///     let tick = MainActor.handler { [self] (_: Timer) in text = "tick" }
  ///     RunLoop.main.schedule(in: .zero, repeating: .seconds(1), block: tick)
  ///   }
  /// }
  /// ```
  ///
  /// Call-outs of ``RunLoop/main`` already happen on the main thread, so the body is called synchronously, in the
  /// regular order of call-outs. The required check costs about as much as a pass of the loop. If a call-out runs the
  /// loop, another call-out can begin in the middle of a function of the main actor.
  ///
  /// - Parameter body: Called with the handler's arguments.
  /// - Precondition: The handler is called on the main thread: its item is in no loop other than ``RunLoop/main``.
  public nonisolated static func handler<Result: Sendable>(
    _ body: @escaping @MainActor @Sendable () -> Result
  ) -> @Sendable () -> Result {
    let isolated = unsafeBitCast(body, to: (@Sendable () -> Result).self)
    return {
      checkIsolated()
      noteCall(of: Isolated0(body: isolated))
      return isolated()
    }
  }

  /// Returns a handler with one argument that runs on the main actor.
  ///
  /// Apart from the argument, it behaves like the handler without arguments.
  public nonisolated static func handler<Argument: Sendable, Result: Sendable>(
    _ body: @escaping @MainActor @Sendable (Argument) -> Result
  ) -> @Sendable (Argument) -> Result {
    let isolated = unsafeBitCast(body, to: (@Sendable (Argument) -> Result).self)
    return { argument in
      checkIsolated()
      noteCall(of: Isolated1(body: isolated))
      return isolated(argument)
    }
  }

  /// Returns a handler with two arguments that runs on the main actor.
  ///
  /// Apart from the arguments, it behaves like the handler without arguments.
  public nonisolated static func handler<First: Sendable, Second: Sendable, Result: Sendable>(
    _ body: @escaping @MainActor @Sendable (First, Second) -> Result
  ) -> @Sendable (First, Second) -> Result {
    let isolated = unsafeBitCast(body, to: (@Sendable (First, Second) -> Result).self)
    return { first, second in
      checkIsolated()
      noteCall(of: Isolated2(body: isolated))
      return isolated(first, second)
    }
  }

  /// Traps unless called on the main actor.
  ///
  /// `assumeIsolated` allocates on each call to check that its closure does not escape. These closures are stored
  /// anyway, so it suffices to remove the actor from their types, which does not change the calling convention.
  @inline(__always)
  private nonisolated static func checkIsolated() {
    MainActor.preconditionIsolated("a handler for the main actor was called elsewhere")
  }
}

// These wrap the user's closures, so that a record names those closures rather than these handlers.

private struct Isolated0<Result> {
  let body: @Sendable () -> Result
}

private struct Isolated1<Argument, Result> {
  let body: @Sendable (Argument) -> Result
}

private struct Isolated2<First, Second, Result> {
  let body: @Sendable (First, Second) -> Result
}
