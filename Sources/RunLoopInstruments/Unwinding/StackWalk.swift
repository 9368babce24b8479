// SPDX-License-Identifier: Apache-2.0

/// The return addresses on a thread's stack, found by the tables that unwinders use.
///
/// Each library has such a table, `.eh_frame`: it says where the caller's registers are, for each address. Of a blocked
/// thread only two registers are known. The caller's frame pointer is then where its function has put it, so many words
/// from where the callee's frame ends, as the beginning of the function's code says. A function that makes room on the
/// stack as it goes has no such distance: its frame is looked for, and it and all that is further out are guesses.
/// Where nothing else leads on, the rest is what ``StackScan`` finds, which are guesses too.
package struct StackWalk {
  /// The addresses, the innermost first.
  package private(set) var addresses: [UInt64]
  /// How many of them are proved, from the innermost on.
  package private(set) var proved = 1
  /// Whether the walk has reached the frame that it was to reach, or the first frame of the thread.
  package private(set) var isComplete = false

  /// - Parameters:
  ///   - limit: An address in the frame of the run; zero: the whole stack is walked.
  ///   - mayGuess: Whether it goes on where nothing is proved.
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
    guard !isComplete, mayGuess, addresses.count < StackScan.most else { return }
    let rest = StackScan(
      programCounter: walker.state.programCounter, stackPointer: walker.state.stackPointer,
      words: stack.words(from: walker.state.stackPointer), limit: limit, in: memory)
    addresses = Array((addresses + rest.addresses.dropFirst()).prefix(StackScan.most))
  }
}

/// Goes from each frame to its caller's.
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
  /// Whether the next instruction is the one at the address, and not one behind a call.
  private var isInterrupted = true
  // What is on the stack is the process's own claim, and may make each search long.
  private var budget = Budget()

  /// The work that all searches of a walk may still do.
  private struct Budget {
    /// As many words as the largest copy has.
    var words = 1 << 17
    /// Calls whose function is looked at.
    var calls = 1024
    /// Frames from which a walk is tried.
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

  /// The address that the function returns to; nil if the stack ends here, or nothing is known.
  mutating func step() -> UInt64? {
    let address = isInterrupted ? state.programCounter : state.programCounter &- 1
    guard let rules = memory.frameRules(at: address) else { return stepByFramePointer() }
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
    if !rules.isSignalFrame, CallInstruction(before: caller.programCounter, in: memory) == nil { return nil }
    caller.stackPointer = base
    if let saved = rules.rules[numbers.stackPointer].flatMap({ value($0, numbers.stackPointer, base) }) {
      guard isFurtherOut(saved, rules) else { return nil }
      caller.stackPointer = saved
    }
    state = caller
    isInterrupted = rules.isSignalFrame
    if limit > 0, base >= limit, !rules.isSignalFrame { isComplete = true }
    return state.programCounter
  }

  /// The address that the function returns to whose frame the frame pointer is of.
  ///
  /// That of a function without a table may keep none, or not yet: so this is a guess.
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

  /// No frame is larger.
  private static var mostBytes: UInt64 { 1 << 20 }

  /// A handler may run on a stack of its own; else a caller's frame is further out than its callee's.
  private func isFurtherOut(_ base: UInt64, _ rules: FrameRules) -> Bool {
    guard !isComplete else { return false }
    return rules.isSignalFrame || base > state.stackPointer || (isInterrupted && base == state.stackPointer)
  }

  private func register(_ number: Int) -> UInt64? {
    number == numbers.stackPointer ? state.stackPointer : state.others[number]
  }

  /// What stands in memory.
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

  /// A register that a function has put on the stack; one that it has taken back from there, in its last instructions,
  /// is what it was.
  private mutating func saved(_ own: Int, at address: UInt64) -> UInt64? {
    address < state.stackPointer && isInterrupted ? register(own) : number(at: address, 8)
  }

  /// The caller's registers.
  private mutating func caller(_ rules: FrameRules, _ base: UInt64) -> MachineState? {
    let returned: UInt64?
    if let rule = rules.rules[rules.returnColumn], rule != .same {
      returned = value(rule, rules.returnColumn, base)
    } else {
      // Only where no call was made since it is still in its register.
      returned = isInterrupted && numbers.link == rules.returnColumn ? register(rules.returnColumn) : nil
    }
    guard let returned else { return nil }
    var others: [Int: UInt64] = [:]
    for number in numbers.preserved where rules.rules[number] == nil { others[number] = register(number) }
    for (number, rule) in rules.rules where number != rules.returnColumn && number != numbers.stackPointer {
      // The caller of a function that is called has no other register; one that was interrupted has all.
      guard numbers.preserved.contains(number) || rules.isSignalFrame else { continue }
      others[number] = value(rule, number, base)
    }
    return MachineState(programCounter: returned & memory.codeAddressMask, stackPointer: base, others: others)
  }

  /// Finds the frame pointer, if the frame is undone by it and it is not known; false: it cannot be found.
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

  /// Whether a frame may be at a place: a frame that is further out, and behind it where a call returns to.
  private mutating func isFrame(at place: UInt64) -> Bool { call(at: place) != nil }

  private mutating func call(at place: UInt64) -> CallInstruction? {
    guard let outer = number(at: place, 8), outer == 0 || outer > place && outer & 7 == 0,
      let address = number(at: place &+ 8, 8)
    else { return nil }
    return CallInstruction(before: address & memory.codeAddressMask, in: memory)
  }

  /// Looks for the frame of a function: the first whose call leads to it, else the first from which the walk ends well.
  private mutating func search(for function: UInt64) -> UInt64? {
    // Outside of the copy, as behind a handler that has a stack of its own, each word would have to be read.
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
