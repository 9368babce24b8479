// SPDX-License-Identifier: Apache-2.0

extension MainActor {
  /// Returns a handler, for an item of the main loop or for a block that is performed on it, that runs on the main
  /// actor.
  ///
  /// ```Swift
  /// @MainActor final class Clock {
  ///   var text = ""
  ///   func start() {
  ///     Timer(after: .zero, repeating: .seconds(1), on: .main, block: MainActor.handler { [self] _ in text = "tick" })
  ///   }
  /// }
  /// ```
  ///
  /// Call-outs of ``RunLoop/main`` are on the main thread already: the body is called synchronously, in its place in
  /// the order of call-outs, after one check that costs about as much as a pass of the loop. A call-out that runs the
  /// loop can be entered again by another, in the middle of a function of the main actor.
  ///
  /// - Parameter body: Called with what the handler is called with.
  /// - Precondition: The handler is called on the main thread: its item is in no other loop than ``RunLoop/main``.
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
  /// Apart from the arguments it is as the handler without any.
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
  /// Apart from the arguments it is as the handler without any.
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

  /// Ends the process unless the calling thread runs on the main actor.
  ///
  /// `assumeIsolated` allocates in each call, to watch that its closure does not escape. These closures are kept
  /// anyway, so that it is enough to take the actor out of their types, which changes nothing of how they are called.
  @inline(__always)
  private nonisolated static func checkIsolated() {
    MainActor.preconditionIsolated("a handler for the main actor was called elsewhere")
  }
}

// What the user's closures are called from, so that a record names them and not these handlers.

private struct Isolated0<Result> {
  let body: @Sendable () -> Result
}

private struct Isolated1<Argument, Result> {
  let body: @Sendable (Argument) -> Result
}

private struct Isolated2<First, Second, Result> {
  let body: @Sendable (First, Second) -> Result
}
