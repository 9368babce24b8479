// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Testing

@testable import RunLoopLab

@Suite("The bench")
struct BenchTests {
  @Test("the call-outs of a stack are the loop's functions for them, without parameters and prefixes")
  func callOutNames() {
    let stack = [
      "closure #1 in run()", "specialized runLoopIsCallingOutToATimer(_:_:)", "RunLoop.run(_:for:)",
      "runLoopIsCallingOutToABlock(_:)", "RunLoop.run(mode:for:)", "main",
    ]
    #expect(callOuts(in: stack) == "runLoopIsCallingOutToATimer < runLoopIsCallingOutToABlock")
    #expect(Array(loopPart(of: stack)) == Array(stack[1...4]))
    #expect(callOuts(in: ["main"]) == "none")
    #expect(loopPart(of: ["main"]).isEmpty)
  }

  @Test("a stack begins with the function that takes it and its caller")
  func ownStack() {
    // The optimizer may have made a copy of it.
    #expect(stack().prefix(2).last?.contains("BenchTests.ownStack(") == true)
  }

  @Test("a description is taken apart, and what is not in it is missing")
  func description() {
    let (description, empty) = Bench().onLoop { rig in
      let empty = LoopDescription(of: rig.loop, names: [])
      let source = rig.keepAlive()
      return (LoopDescription(of: rig.loop, names: [(rig.loop, "loop"), (source, "source")]), empty)
    }
    #expect(description.lines.first?.hasPrefix("<RunLoop loop>{") == true)
    #expect(description.state == "none false (none)")
    #expect(description.set("common modes") == "1 (kCFRunLoopDefaultMode)")
    #expect(description.set("common mode items") == "0 ()")
    #expect(description.set("sources0", of: .default) == "1 (source)")
    #expect(description.set("sources0", of: .tracking) == "missing")
    #expect(description.set("sources2", of: .default) == "missing")
    #expect(empty.items(of: .default) == "sources0 (null), sources1 (null), observers (null), timers (null)")
  }

  @Test("the call-out that is being made is the innermost, and none outside a run")
  func innermostCallOut() {
    let seen = Record()
    Bench().onLoop { rig in
      let timer = Timer(deadline: rig.now) { _ in
        rig.loop.perform { seen.write(rig.trace.callOut) }
        rig.loop.run(mode: .default, for: .zero)
        seen.write(rig.trace.callOut)
      }
      rig.loop.add(timer, forMode: .default)
      seen.write(rig.trace.callOut)
      rig.loop.run(mode: .default, for: .seconds(1))
      seen.write(rig.trace.callOut)
    }
    #expect(seen.text == "none block timer none")
  }

  @Test("a pipe gives what was written to it, and nothing before")
  func pipe() {
    let pipe = Pipe()
    #expect(pipe.read() == 0)
    pipe.write()
    pipe.write()
    #expect(pipe.read() == 2)
  }
}
