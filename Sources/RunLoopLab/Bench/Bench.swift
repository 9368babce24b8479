import RunLoopCore

/// Where experiments get their loops: real ones, on virtual time, each on a thread of its own.
struct Bench: Sendable {
  /// How the loops are broken on purpose; honest loops have none.
  let sabotage: Sabotage
  /// What the experiment says while it runs, as the documents' programs print theirs.
  let log = Record()

  init(sabotage: Sabotage = []) {
    self.sabotage = sabotage
  }

  /// Runs `body` on a new thread with a new loop, and waits until both have ended.
  func onLoop<Result: Sendable>(_ body: @escaping @Sendable (Rig) -> Result) -> Result {
    onVirtualTime(sabotage: sabotage) { [log] time, loop in
      log.write("A new loop:")
      let trace = Trace()
      loop.setTraceHook { event in
        if trace.write(event) == .standsStill { time.advance(by: Rig.longerThanAnyRun) }
      }
      defer { loop.setTraceHook(nil) }
      return body(Rig(time: time, loop: loop, trace: trace, log: log))
    }
  }
}
