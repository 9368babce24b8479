import RunLoopConformance
import Glibc
let seed = CommandLine.arguments.count > 1 ? UInt64(CommandLine.arguments[1])! : 1
let count = CommandLine.arguments.count > 2 ? Int(CommandLine.arguments[2])! : 1000
var t = [Duration.zero, .zero]
let clock = ContinuousClock()
var equal = 0
var entries = 0
for n in 0..<count {
  var g = Generator(seed: seed, number: n)
  let program = g.program()
  var a = Log(), b = Log()
  t[0] += clock.measure { a = CoreFoundationMachine().run(program) }
  t[1] += clock.measure { b = RunLoopMachine().run(program) }
  entries += a.entries.count
  if a == b { equal += 1 } else if CommandLine.arguments.count > 3 { print(n, program); print("  CF  ", a); print("  ours", b) }
}
print(equal, count, entries, t)
