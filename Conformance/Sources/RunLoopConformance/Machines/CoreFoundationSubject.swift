// SPDX-License-Identifier: Apache-2.0

import CVirtualCalls
import CoreFoundation

/// Core Foundation's loop of the calling thread, on virtual time.
final class CoreFoundationSubject: Subject, @unchecked Sendable {
  // Sendable: items are created before another thread uses them; Core Foundation's locks guard its own state.

  private let clock: VirtualClock
  private let loop: CFRunLoop
  private var sources: [CFRunLoopSource] = []
  private var observers: [CFRunLoopObserver] = []
  private var timers: [CFRunLoopTimer] = []
  /// The contexts of the sources.
  private var sourceCalls: [SourceCall] = []
  private var signals: Int64 = 0
  /// The items added to the common modes, in that order; some may have become invalid.
  private var commonItems: [Item] = []
  private var commonModes: Set<Int> = [0]

  /// Uses the loop of the calling thread, which has joined the clock; nil if an ended thread has created that loop.
  ///
  /// Core Foundation identifies loops by their threads' ids. It never releases a loop that was created by a thread's
  /// last destructors: a later thread with the same id finds it, with timers that do not use the clock. It is
  /// released with this thread, so that the next one has a new loop.
  init?(_ clock: VirtualClock) {
    self.clock = clock
    self.loop = CFRunLoopGetCurrent()
    // A new loop has its default mode, and a mode has its timer.
    guard clock.hasTimers else { return nil }
  }

  /// The program's start by Core Foundation's wall clock.
  private static let begin = Double(cvc_clock_wall_base()) - kCFAbsoluteTimeIntervalSince1970

  var tick: Int { clock.tick }
  func work(_ ticks: Int) { clock.advance(by: ticks) }
  func adoptCallingThread() { clock.join() }
}

// Creating items.
extension CoreFoundationSubject {
  func makeItems(of program: Program, for interpreter: Interpreter) {
    for (index, plan) in program.sources.enumerated() { makeSource(index, plan, interpreter) }
    for (index, plan) in program.observers.enumerated() { makeObserver(index, plan, interpreter) }
    for (index, plan) in program.timers.enumerated() { makeTimer(index, plan, interpreter) }
  }

  private func makeSource(_ index: Int, _ plan: SourcePlan, _ interpreter: Interpreter) {
    let call = SourceCall(index, interpreter)
    sourceCalls.append(call)
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(call).toOpaque()
    context.perform = performSource
    if plan.tellsModes {
      context.schedule = { info, _, mode in tell(info, mode) { .entered($0, $1) } }
      context.cancel = { info, _, mode in tell(info, mode) { .left($0, $1) } }
    }
    sources.append(CFRunLoopSourceCreate(nil, plan.order, &context))
  }

  private func makeObserver(_ index: Int, _ plan: ObserverPlan, _ interpreter: Interpreter) {
    let observer = CFRunLoopObserverCreateWithHandler(
      nil, CFOptionFlags(plan.activities), plan.repeats, plan.order
    ) { [unowned interpreter] _, activity in
      interpreter.callOut(.observer(index, UInt(activity.rawValue)))
    }
    if let observer { observers.append(observer) }
  }

  private func makeTimer(_ index: Int, _ plan: TimerPlan, _ interpreter: Interpreter) {
    let timer = CFRunLoopTimerCreateWithHandler(
      nil, Self.begin + Double(plan.date), Double(plan.interval), 0, 0
    ) { [unowned interpreter] _ in
      interpreter.callOut(.timer(index))
    }
    if let timer { timers.append(timer) }
  }
}

extension CoreFoundationSubject {
  func add(_ item: Item, to mode: ModeName) {
    if mode == .common, !commonItems.contains(item) { commonItems.append(item) }
    switch item {
    case .source(let index): CFRunLoopAddSource(loop, sources[index], Self.spell(mode))
    case .observer(let index): CFRunLoopAddObserver(loop, observers[index], Self.spell(mode))
    case .timer(let index): CFRunLoopAddTimer(loop, timers[index], Self.spell(mode))
    }
  }

  func remove(_ item: Item, from mode: ModeName) {
    if mode == .common { commonItems.removeAll { $0 == item } }
    switch item {
    case .source(let index): CFRunLoopRemoveSource(loop, sources[index], Self.spell(mode))
    case .observer(let index): CFRunLoopRemoveObserver(loop, observers[index], Self.spell(mode))
    case .timer(let index): CFRunLoopRemoveTimer(loop, timers[index], Self.spell(mode))
    }
  }

  func invalidate(_ item: Item) {
    switch item {
    case .source(let index): CFRunLoopSourceInvalidate(sources[index])
    case .observer(let index): CFRunLoopObserverInvalidate(observers[index])
    case .timer(let index): CFRunLoopTimerInvalidate(timers[index])
    }
  }

  func signal(source: Int) {
    // Signals are ordered by their times, so each is made at a different time.
    signals += 1
    clock.seeming(later: signals) { CFRunLoopSourceSignal(sources[source]) }
  }

  func perform(block: Int, in modes: [ModeName], for interpreter: Interpreter) {
    let names: CFTypeRef =
      if modes.count == 1 {
        Self.spell(modes[0])
      } else {
        Self.list(modes)
      }
    CFRunLoopPerformBlock(loop, names) { [unowned interpreter] in interpreter.callOut(.block(block)) }
  }

  /// Makes a mode common, and adds the common items to it in the order in which they became common.
  ///
  /// Core Foundation adds them in the order of a set, which depends on their addresses. Items that the mode already
  /// contains are not affected, so adding them first makes the order deterministic.
  func addCommonMode(_ mode: Int) {
    if commonModes.insert(mode).inserted {
      for item in commonItems { add(item, to: .mode(mode)) }
    }
    CFRunLoopAddCommonMode(loop, Self.spell(.mode(mode)))
  }

  func setDate(ofTimer timer: Int, to tick: Int) {
    CFRunLoopTimerSetNextFireDate(timers[timer], Self.begin + Double(tick))
  }

  func stop() { CFRunLoopStop(loop) }
  func stop(mode: Int) {
    let name = Self.spell(.mode(mode))
    withExtendedLifetime(name) { cvc_stop_mode(Self.pointer(loop), Self.pointer(name)) }
  }
  func wakeUp() { CFRunLoopWakeUp(loop) }

  func run(in mode: ModeName, _ limit: Limit, returnAfterSource: Bool) -> RunOutcome {
    let seconds: Double =
      switch limit {
      case .poll: 0
      case .forever: 1e10
      case .overdue: -5
      case .notANumber: .nan
      }
    let result = CFRunLoopRunInMode(Self.spell(mode), seconds, returnAfterSource)
    guard let outcome = RunOutcome(rawValue: result.rawValue) else {
      preconditionFailure("an unknown result of a run, \(result.rawValue)")
    }
    return outcome
  }

  func runUntilStopped() { CFRunLoopRun() }
}

extension CoreFoundationSubject {
  func contains(_ item: Item, in mode: ModeName) -> Bool {
    switch item {
    case .source(let index): CFRunLoopContainsSource(loop, sources[index], Self.spell(mode))
    case .observer(let index): CFRunLoopContainsObserver(loop, observers[index], Self.spell(mode))
    case .timer(let index): CFRunLoopContainsTimer(loop, timers[index], Self.spell(mode))
    }
  }

  func isValid(_ item: Item) -> Bool {
    switch item {
    case .source(let index): CFRunLoopSourceIsValid(sources[index])
    case .observer(let index): CFRunLoopObserverIsValid(observers[index])
    case .timer(let index): CFRunLoopTimerIsValid(timers[index])
    }
  }

  func isSignalled(source: Int) -> Bool { cvc_is_signalled(Self.pointer(sources[source])) }

  func date(ofTimer timer: Int) -> Int? { Self.tick(of: CFRunLoopTimerGetNextFireDate(timers[timer])) }

  func nextDate(in mode: ModeName) -> Int? { Self.tick(of: CFRunLoopGetNextTimerFireDate(loop, Self.spell(mode))) }

  var modes: Set<ModeName> {
    var modes: Set<ModeName> = []
    let names = CFRunLoopCopyAllModes(loop)
    for index in 0..<CFArrayGetCount(names) {
      let name = unsafeBitCast(CFArrayGetValueAtIndex(names, index), to: CFString.self)
      modes.insert(Self.mode(named: name))
    }
    return modes
  }

  var currentMode: ModeName? {
    guard let name = cvc_copy_current_mode(Self.pointer(loop)) else { return nil }
    return Self.mode(named: Unmanaged<CFString>.fromOpaque(name).takeRetainedValue())
  }

  var isWaiting: Bool { CFRunLoopIsWaiting(loop) }
}

// Names and dates.
extension CoreFoundationSubject {
  private static let utf8 = CFStringEncoding(0x0800_0100)

  // Immutable strings.
  private nonisolated(unsafe) static let names: [CFString] = [kCFRunLoopDefaultMode] + (1..<8).map(makeName)

  private static func makeName(_ number: Int) -> CFString {
    CFStringCreateWithCString(nil, ModeName.spell(number), utf8)
  }

  /// Returns the name of a mode; Core Foundation compares the pseudo-mode by the address of its constant.
  private static func spell(_ mode: ModeName) -> CFString {
    switch mode {
    case .common: kCFRunLoopCommonModes
    case .mode(let number): names.indices.contains(number) ? names[number] : makeName(number)
    }
  }

  fileprivate static func mode(named name: CFString) -> ModeName {
    if let number = names.firstIndex(where: { CFEqual(name, $0) }) { return .mode(number) }
    if CFEqual(name, kCFRunLoopCommonModes) { return .common }
    var text = [CChar](repeating: 0, count: 32)
    CFStringGetCString(name, &text, text.count, utf8)
    let characters = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    guard let number = ModeName.number(in: String(decoding: characters, as: UTF8.self)) else {
      preconditionFailure("a mode of an unknown name")
    }
    return .mode(number)
  }

  private static func list(_ modes: [ModeName]) -> CFArray {
    let names = modes.map(spell)
    var callBacks = kCFTypeArrayCallBacks
    return withExtendedLifetime(names) {
      var pointers: [UnsafeRawPointer?] = names.map(pointer)
      return CFArrayCreate(nil, &pointers, pointers.count, &callBacks)
    }
  }

  private static func pointer(_ object: AnyObject) -> UnsafeRawPointer {
    UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
  }

  /// Returns the tick of a date; Core Foundation's date for none is zero.
  private static func tick(of date: CFAbsoluteTime) -> Int? {
    date == 0 ? nil : Int((date - begin).rounded())
  }
}

/// The context of a source.
private final class SourceCall {
  let index: Int
  unowned let interpreter: Interpreter

  init(_ index: Int, _ interpreter: Interpreter) {
    self.index = index
    self.interpreter = interpreter
  }
}

private nonisolated func tell(
  _ info: UnsafeMutableRawPointer?, _ mode: CFString?, _ event: (Int, ModeName) -> Log.Event
) {
  guard let info, let mode else { return }
  let call = Unmanaged<SourceCall>.fromOpaque(info).takeUnretainedValue()
  call.interpreter.tell(event(call.index, CoreFoundationSubject.mode(named: mode)))
}

private nonisolated func performSource(_ info: UnsafeMutableRawPointer?) {
  guard let info else { return }
  let call = Unmanaged<SourceCall>.fromOpaque(info).takeUnretainedValue()
  call.interpreter.callOut(.source(call.index))
}
