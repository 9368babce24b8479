// SPDX-License-Identifier: Apache-2.0

/// The return addresses on a thread's stack, found with unwind tables.
///
/// The table `.eh_frame` of each library describes, for every address, where the caller's registers are. For a blocked
/// thread, only two registers are known. The frame pointer of a caller is then at a fixed distance from the end of the
/// callee's frame, which follows from the first instructions of its function. A function that allocates stack
/// dynamically has no fixed distance, so its frame is searched for, and that frame and all outer ones are guesses. So
/// are the callers of a function without a table entry, whose frame follows from its first instructions. If
/// unwinding stops before the end, ``StackScan`` finds the rest, as guesses too.
package struct StackWalk {
  /// The addresses, innermost first.
  package private(set) var addresses: [UInt64]
  /// The number of innermost addresses that are proved.
  package private(set) var proved = 1
  /// Whether the walk reached the requested frame or the first frame of the thread.
  package private(set) var isComplete = false
  /// Whether the addresses reach the requested frame or the first frame of the thread, at least by guesses.
  package private(set) var reachesEnd = false

  /// Walks a stack.
  ///
  /// - Parameters:
  ///   - limit: An address in the frame of the run, or zero to walk the whole stack.
  ///   - mayGuess: Whether to continue with guesses where nothing is proved.
  package init(
    from state: MachineState, stack: StackCopy, limit: UInt64, mayGuess: Bool = true, in memory: some ReadableMemory
  ) {
    addresses = [state.programCounter]
    guard let numbers = RegisterNumbers(memory.instructions) else { return }
    var walker = Walker(state: state, stack: stack, limit: limit, mayGuess: mayGuess, numbers: numbers, memory: memory)
    while addresses.count < StackScan.most {
      guard let address = walker.step() else { break }
      addresses.append(address)
      if walker.isProved { proved = addresses.count }
    }
    isComplete = walker.isComplete
    reachesEnd = isComplete
    guard !isComplete, mayGuess, addresses.count < StackScan.most else { return }
    let rest = StackScan(
      programCounter: walker.state.programCounter, stackPointer: walker.state.stackPointer,
      words: stack.words(from: walker.state.stackPointer), limit: limit, in: memory)
    reachesEnd = rest.reachesRun
    addresses = Array((addresses + rest.addresses.dropFirst()).prefix(StackScan.most))
  }
}

/// Steps from each frame to its caller.
private struct Walker<Memory: ReadableMemory> {
  private(set) var state: MachineState
  let stack: StackCopy
  let limit: UInt64
  let mayGuess: Bool
  let numbers: RegisterNumbers
  let memory: Memory
  /// Whether all steps so far were certain.
  private(set) var isProved = true
  private(set) var isComplete = false
  /// Whether the address is the next instruction's and not a return address.
  private var isInterrupted = true
  // Limits the searches, because the stack is untrusted data and could make each of them long.
  private var budget = Budget()

  /// The remaining work of all searches in a walk.
  private struct Budget {
    /// The number of words in the largest copy.
    var words = 1 << 17
    /// The number of calls whose functions are examined.
    var calls = 1024
    /// The number of frames from which a walk is attempted.
    var walks = 64
  }

  init(
    state: MachineState, stack: StackCopy, limit: UInt64, mayGuess: Bool, numbers: RegisterNumbers, memory: Memory
  ) {
    self.state = state
    self.stack = stack
    self.limit = limit
    self.mayGuess = mayGuess
    self.numbers = numbers
    self.memory = memory
  }

  /// Steps to the caller and returns its address, or nil at the end of the stack or if the caller is unknown.
  mutating func step() -> UInt64? {
    let address = isInterrupted ? state.programCounter : state.programCounter &- 1
    guard let rules = memory.frameRules(at: address) else {
      if let returned = stepByInstructions(at: address) { return returned }
      return stepByFramePointer()
    }
    if case .undefined? = rules.rules[rules.returnColumn] {
      isComplete = true
      return nil
    }
    guard findFramePointer(of: rules), let base = base(rules), isFurtherOut(base, rules) else { return nil }
    guard var caller = caller(rules, base) else { return nil }
    guard caller.programCounter != 0 else {
      isComplete = true
      return nil
    }
    guard memory.isCode(caller.programCounter &- 1) else { return nil }
    var returnsFromSignal = false
    if !rules.isSignalFrame, CallInstruction(before: caller.programCounter, in: memory) == nil {
      // The kernel called a signal handler, whose return address is the start of a function without a call.
      guard isSignalFrame(at: caller.programCounter) else { return nil }
      // The table entry usually begins one byte earlier, for unwinders that always look there.
      returnsFromSignal = memory.frameRules(at: caller.programCounter &- 1)?.isSignalFrame != true
    }
    caller.stackPointer = base
    if let saved = rules.rules[numbers.stackPointer].flatMap({ value($0, numbers.stackPointer, base) }) {
      guard isFurtherOut(saved, rules) else { return nil }
      caller.stackPointer = saved
    }
    state = caller
    isInterrupted = rules.isSignalFrame || returnsFromSignal
    if limit > 0, base >= limit, !rules.isSignalFrame { isComplete = true }
    return state.programCounter
  }

  /// Steps out of a function without a table entry, by its instructions, and returns the return address.
  ///
  /// This is a guess, because only the first or last instructions of the function are read.
  private mutating func stepByInstructions(at address: UInt64) -> UInt64? {
    guard !isComplete, memory.instructions == .x86 else { return nil }
    if let frame = BareFrame(endingAt: state.programCounter, in: memory), let found = leave(frame) { return found }
    guard let starts = BareFunction(at: address, in: memory) else { return nil }
    // A call that leads to the function and whose place fits its frame is the best evidence.
    var place = state.stackPointer
    while stack.contains(place), place - state.stackPointer < 8192, budget.words > 0, budget.calls > 0 {
      defer { place &+= 8 }
      budget.words -= 1
      guard let word = number(at: place, 8), memory.isCode(word), let call = CallInstruction(before: word, in: memory)
      else { continue }
      budget.calls -= 1
      guard let target = call.target, starts.range.contains(target) else { continue }
      let frame = BareFrame(of: target, upTo: state.programCounter, in: memory)
      if state.stackPointer &+ frame.size == place { return leave(frame) }
    }
    for start in starts.likely {
      if let found = leave(BareFrame(of: start, upTo: state.programCounter, in: memory)) { return found }
    }
    return nil
  }

  /// Steps out of a frame if it ends with a return address after a call.
  private mutating func leave(_ frame: BareFrame) -> UInt64? {
    let place = state.stackPointer &+ frame.size
    guard let returned = number(at: place, 8), CallInstruction(before: returned, in: memory) != nil else { return nil }
    var others: [Int: UInt64] = [:]
    for number in numbers.preserved { others[number] = register(number) }
    for (own, distance) in frame.saved where numbers.preserved.contains(own) {
      others[own] = number(at: place &- distance, 8)
    }
    isProved = false
    isInterrupted = false
    state = MachineState(programCounter: returned, stackPointer: place &+ 8, others: others)
    if limit > 0, state.stackPointer >= limit { isComplete = true }
    return returned
  }

  /// Steps with the frame pointer, and returns the return address of its frame.
  ///
  /// This is a guess, because a function without a table may not have set up a frame pointer.
  private mutating func stepByFramePointer() -> UInt64? {
    guard !isComplete, let frame = register(numbers.framePointer), frame >= state.stackPointer,
      frame - state.stackPointer < Walker.mostBytes, call(at: frame) != nil, let outer = number(at: frame, 8),
      let returned = number(at: frame &+ 8, 8)
    else { return nil }
    isProved = false
    isInterrupted = false
    state = MachineState(
      programCounter: returned & memory.codeAddressMask, stackPointer: frame &+ 16,
      others: [numbers.framePointer: outer])
    if limit > 0, state.stackPointer >= limit { isComplete = true }
    return state.programCounter
  }

  /// The maximum size of a frame.
  private static var mostBytes: UInt64 { 1 << 20 }

  /// Whether an address is where a signal handler returns to.
  private func isSignalFrame(at address: UInt64) -> Bool {
    memory.frameRules(at: address &- 1)?.isSignalFrame == true || memory.frameRules(at: address)?.isSignalFrame == true
  }

  /// A signal handler may run on its own stack; otherwise a caller's frame is further out than its callee's.
  private func isFurtherOut(_ base: UInt64, _ rules: FrameRules) -> Bool {
    guard !isComplete else { return false }
    return rules.isSignalFrame || base > state.stackPointer || (isInterrupted && base == state.stackPointer)
  }

  private func register(_ number: Int) -> UInt64? {
    number == numbers.stackPointer ? state.stackPointer : state.others[number]
  }

  /// Reads a number from the stack or memory.
  private mutating func number(at address: UInt64, _ size: Int) -> UInt64? {
    if let number = stack.number(at: address, size) { return number }
    let found = memory.bytes(at: address, count: size)
    guard found.count == size else { return nil }
    if stack.isPast { isProved = false }
    return found.number(0, size)
  }

  private mutating func formula(_ bytes: [UInt8], _ first: UInt64?) -> UInt64? {
    let (state, counter, stackPointer) = (state, numbers.link == nil ? 16 : 32, numbers.stackPointer)
    let (stack, memory) = (stack, memory)
    return FrameExpression.value(
      bytes, startingWith: first,
      .init(
        register: { number in
          number == stackPointer
            ? state.stackPointer : number == counter ? state.programCounter : state.others[number]
        },
        word: { address, size in
          if let number = stack.number(at: address, size) { return number }
          let found = memory.bytes(at: address, count: size)
          return found.count == size ? found.number(0, size) : nil
        }))
  }

  private mutating func base(_ rules: FrameRules) -> UInt64? {
    switch rules.base {
    case .register(let number, let offset): register(number).map { $0 &+ UInt64(bitPattern: offset) }
    case .expression(let bytes): formula(bytes, nil)
    }
  }

  private mutating func value(_ rule: FrameRules.Rule, _ own: Int, _ base: UInt64) -> UInt64? {
    switch rule {
    case .undefined: nil
    case .same: register(own)
    case .at(let offset): saved(own, at: base &+ UInt64(bitPattern: offset))
    case .value(let offset): base &+ UInt64(bitPattern: offset)
    case .register(let number): register(number)
    case .atExpression(let bytes): formula(bytes, base).flatMap { number(at: $0, 8) }
    case .valueExpression(let bytes): formula(bytes, base)
    }
  }

  /// The saved value of a register.
  ///
  /// If the function has already restored it, in its last instructions, the register itself has the value.
  private mutating func saved(_ own: Int, at address: UInt64) -> UInt64? {
    address < state.stackPointer && isInterrupted ? register(own) : number(at: address, 8)
  }

  /// Computes the caller's registers.
  private mutating func caller(_ rules: FrameRules, _ base: UInt64) -> MachineState? {
    let returned: UInt64?
    if let rule = rules.rules[rules.returnColumn], rule != .same {
      returned = value(rule, rules.returnColumn, base)
    } else {
      // Before any call, the return address is still in its register.
      returned = isInterrupted && numbers.link == rules.returnColumn ? register(rules.returnColumn) : nil
    }
    guard let returned else { return nil }
    var others: [Int: UInt64] = [:]
    for number in numbers.preserved where rules.rules[number] == nil { others[number] = register(number) }
    for (number, rule) in rules.rules where number != rules.returnColumn && number != numbers.stackPointer {
      // An interrupted function has all its registers; a normal caller has only those that are callee-saved.
      guard numbers.preserved.contains(number) || rules.isSignalFrame else { continue }
      others[number] = value(rule, number, base)
    }
    return MachineState(programCounter: returned & memory.codeAddressMask, stackPointer: base, others: others)
  }

  /// Ensures that the frame pointer is known if the rules need it; returns false if it cannot be found.
  private mutating func findFramePointer(of rules: FrameRules) -> Bool {
    guard case .register(numbers.framePointer, _) = rules.base, register(numbers.framePointer) == nil else {
      return true
    }
    let function = rules.code.lowerBound
    if let layout = FrameLayout(of: function, in: memory) {
      let place = state.stackPointer &+ UInt64(bitPattern: Int64(8 * layout.words))
      if isFrame(at: place), FrameLayout.isFixed(rules.code, in: memory) {
        state.others[numbers.framePointer] = place
        return true
      }
    }
    guard mayGuess, let place = search(for: function) else { return false }
    isProved = false
    state.others[numbers.framePointer] = place
    return true
  }

  /// Whether a place may hold a frame: an outer frame pointer followed by a return address.
  private mutating func isFrame(at place: UInt64) -> Bool { call(at: place) != nil }

  private mutating func call(at place: UInt64) -> CallInstruction? {
    guard let outer = number(at: place, 8), outer == 0 || outer > place && outer & 7 == 0,
      let address = number(at: place &+ 8, 8)
    else { return nil }
    return CallInstruction(before: address & memory.codeAddressMask, in: memory)
  }

  /// Searches for a function's frame: first by a call that leads to it, then by a walk that reaches the end.
  private mutating func search(for function: UInt64) -> UInt64? {
    // Outside the copy, for example behind a handler with its own stack, every word would have to be read.
    guard stack.contains(state.stackPointer) else { return nil }
    let end = limit > state.stackPointer ? min(limit, stack.end) : stack.end
    var open: [UInt64] = []
    var place = (state.stackPointer &+ 7) & ~7
    while place < end, budget.words > 0, budget.calls > 0 {
      defer { place &+= 8 }
      budget.words -= 1
      guard let call = call(at: place) else { continue }
      guard let target = call.target else {
        if open.count < 16 { open.append(place) }
        continue
      }
      if target == function { return place }
      budget.calls -= 1
      if TailCall.leads(from: target, to: function, in: memory) { return place }
    }
    for place in open.prefix(budget.walks) {
      budget.walks -= 1
      var start = state
      start.others[numbers.framePointer] = place
      let walk = StackWalk(from: start, stack: stack, limit: limit, mayGuess: false, in: memory)
      if walk.isComplete { return place }
    }
    return nil
  }
}
