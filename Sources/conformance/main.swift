import RunLoopConformance
let program = Program(observers: [ObserverPlan(activities: 255)], timers: [TimerPlan(date: 100), TimerPlan(date: 200, body: Body(afterwards: [.stop]))],
  main: [.add(.observer(0), .common), .add(.timer(0), .mode(0)), .add(.timer(1), .mode(0)), .run(.mode(0), .forever, returnAfterSource: false)], whileAsleep: [Interruption(at: 50, [.ask(.modes), .wakeUp])])
let clock = ContinuousClock()
for e in CoreFoundationMachine().run(program).entries { print(e) }
print(CoreFoundationMachine().run(program) == RunLoopMachine().run(program))
print(clock.measure { for _ in 0..<1000 { _ = CoreFoundationMachine().run(program) } })
print(clock.measure { for _ in 0..<1000 { _ = RunLoopMachine().run(program) } })
