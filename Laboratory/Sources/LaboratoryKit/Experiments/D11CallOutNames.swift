// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D11: the loop's functions in a backtrace.
struct CallOutNames: Experiment {
  let id = "D11"
  let title = "Call-outs under telling names"
  let articles: [Article] = [.xilankong]
  let claim = """
    The loop calls out through functions with long names. Stopped in a call-out, the debugger shows in the stack whether it \
    is one to an observer, a block, a source0, a source1, a timer or the main queue.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    Core Foundation calls out through functions with such names; the articles print its stacks.
    """
  let difference = Difference.addition(
    """
    The functions have names of our own, one for each kind of call-out, as runLoopIsCallingOutToATimer.
    """)

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "the call-out functions in the stack of an observer",
      callOuts(bench) { rig, look in rig.observe(.entry) { _, _ in look() } },
      requires: "runLoopIsCallingOutToAnObserver")
    outcome.observe(
      "of a block", callOuts(bench) { rig, look in rig.loop.perform(look) }, requires: "runLoopIsCallingOutToABlock")
    outcome.observe(
      "of a source0",
      callOuts(bench) { rig, look in
        let source = RunLoop.Source(perform: look)
        rig.loop.add(source, forMode: .default)
        source.signal()
      }, requires: "runLoopIsCallingOutToASource0")
    outcome.observe("of a port", callOuts(bench, port), requires: "runLoopIsCallingOutToASource1")
    outcome.observe("of a descriptor source", callOuts(bench, pipe), requires: "runLoopIsCallingOutToASource1")
    outcome.observe(
      "of a timer",
      callOuts(bench) { rig, look in
        rig.loop.add(Timer(timeInterval: 1, repeats: false) { _ in look() }, forMode: .default)
      }, requires: "runLoopIsCallingOutToATimer")
    outcome.observe(
      "of an observer in a run that a timer nests in its call-out, innermost first",
      callOuts(bench) { rig, look in
        rig.keepAlive(.tracking)
        rig.observe(.entry, mode: .tracking) { _, _ in look() }
        let timer = Timer(timeInterval: 1, repeats: false) { _ in rig.loop.run(mode: .tracking, for: .zero) }
        rig.loop.add(timer, forMode: .default)
      }, requires: "runLoopIsCallingOutToAnObserver < runLoopIsCallingOutToATimer")
    outcome.observe(
      "outside every call-out, on the same thread", bench.onLoop { _ in LaboratoryKit.callOuts(in: stack()) },
      requires: "none")
    return outcome
  }

  /// Returns the names of the call-out functions on the stack when the loop calls the item of `prepare`.
  private func callOuts(
    _ bench: Bench, _ prepare: @escaping @Sendable (Rig, @escaping @Sendable () -> Void) -> Void
  ) -> String {
    bench.onLoop { rig in
      let found = Record()
      prepare(rig) {
        let stack = stack()
        found.write(LaboratoryKit.callOuts(in: stack))
        rig.note("the stack of the loop:")
        for function in loopPart(of: stack) { rig.log.write("  \(function)") }
      }
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(2))
      return found.text
    }
  }

  private func port(_ rig: Rig, _ look: @escaping @Sendable () -> Void) {
    let port = Port { _, _ in look() }
    rig.loop.add(port, forMode: .default)
    try? port.send(Port.Message())
  }

  private func pipe(_ rig: Rig, _ look: @escaping @Sendable () -> Void) {
    let pipe = Pipe()
    let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
      look()
      source.invalidate()
      pipe.read()
    }
    try? rig.loop.add(source, forMode: .default)
    pipe.write()
  }
}
