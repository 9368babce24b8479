// SPDX-License-Identifier: Apache-2.0

import CLaboratory
import Glibc
import RunLoopCore
import Synchronization

/// The functions on the calling thread's stack, innermost first, by the names in the program's symbol tables.
///
/// A function without a symbol is left out, and so is one that was inlined: to find those, the debugger's information
/// would have to be read.
@inline(never)
func stack() -> [String] {
  var addresses = [UInt](repeating: 0, count: deepestStack)
  let count = lab_stack(&addresses, Int32(deepestStack))
  return addresses.prefix(Int(count)).compactMap { FunctionNames.shared.name(UInt64($0)) }
}

/// How many calls of a stack are looked at.
private let deepestStack = 256

/// The call-out functions among the functions of a stack, without their parameters, or `none`.
func callOuts(in stack: [String]) -> String {
  let names = stack.compactMap(callOut)
  return names.isEmpty ? "none" : names.joined(separator: " < ")
}

/// The name of a function without its parameters, if it is one that a loop calls out by.
private func callOut(_ function: String) -> Substring? {
  let name = function.prefix { $0 != "(" }.split(separator: " ").last ?? ""
  return name.hasPrefix("runLoopIs") ? name : nil
}

/// The kind of the call-out that the innermost run of the calling thread's loop is making, or `none`.
///
/// Observers' call-outs are not among them.
@inline(never)
func currentCallOut() -> String { kindOfCallOut(in: stack()) }

/// The kind of the call-out that the innermost run of a stack is making, or `none`.
func kindOfCallOut(in stack: [String]) -> String {
  let functions = stack.prefix { !$0.contains("RunLoop.run(") }.compactMap(callOut).map(String.init)
  // Work that is handed to a thread is a block of its own source.
  if functions.contains("runLoopIsPerformingHandOffs") { return "source0" }
  return functions.lazy.compactMap { kindsOfCallOuts[$0] }.first ?? "none"
}

private let kindsOfCallOuts = [
  "runLoopIsCallingOutToABlock": "block", "runLoopIsCallingOutToAnExecutorJob": "block",
  "runLoopIsCallingOutToASource0": "source0", "runLoopIsCallingOutToASource1": "source1",
  "runLoopIsCallingOutToATimer": "timer", "runLoopIsServicingTheMainDispatchQueue": "mainQueue",
]

/// The part of a stack that is the loop's own: from the innermost call-out to the outermost run.
func loopPart(of stack: [String]) -> ArraySlice<String> {
  guard let first = stack.firstIndex(where: { $0.contains("runLoopIs") }),
    let last = stack.lastIndex(where: { $0.contains("RunLoop.run(") }), first <= last
  else { return [] }
  return stack[first...last]
}

/// A function that has called another.
struct Caller: Sendable {
  /// Where it goes on when the call returns.
  let address: UInt64
  /// The call-out that it is, if it is one.
  let callOut: String?
}

/// Who has called the function that calls this one, the innermost first.
@inline(never)
func callers() -> [Caller] {
  var addresses = [UInt](repeating: 0, count: deepestStack)
  let count = lab_stack(&addresses, Int32(deepestStack))
  // The first is this function, and the second the one that has called it.
  return addresses.prefix(Int(count)).dropFirst(2).map { address in
    let name = callOuts(in: [FunctionNames.shared.name(UInt64(address)) ?? ""])
    return Caller(address: UInt64(address), callOut: name == "none" ? nil : name)
  }
}

/// The names of the functions of this process, read from the files of its program and libraries.
///
/// Can be used from any thread.
final class FunctionNames: Sendable {
  static let shared = FunctionNames()

  /// The symbols of one file.
  private final class Table: @unchecked Sendable {
    // Sendable: it never changes.
    private let symbols: OpaquePointer

    init?(_ path: String) {
      guard let symbols = lab_symbols_read(path) else { return nil }
      self.symbols = symbols
    }

    func name(at distance: UInt64) -> String? { lab_symbols_find(symbols, distance).map { String(cString: $0) } }

    deinit { lab_symbols_free(symbols) }
  }

  private struct State {
    /// By the files' first addresses; nil for one without symbols.
    var tables: [UInt64: Table?] = [:]
    var names: [UInt64: String?] = [:]
  }

  private let state = Mutex(State())

  /// The function that a call returns to; nil if it has no symbol.
  func name(_ address: UInt64) -> String? {
    state.withLock { state in
      if let known = state.names[address] { return known }
      // A call may be the last of its function's instructions.
      let found = Self.symbol(at: address &- 1, &state.tables).map(Self.demangled)
      state.names[address] = .some(found)
      return found
    }
  }

  private static func symbol(at address: UInt64, _ tables: inout [UInt64: Table?]) -> String? {
    var image = lab_image()
    guard lab_image_find(address, &image) != 0 else { return nil }
    if tables[image.base] == nil { tables[image.base] = .some(Table(String(cString: image.path))) }
    if let table = tables[image.base] ?? nil { return table.name(at: address &- image.base) }
    return image.symbol.map { String(cString: $0) }
  }

  private static func demangled(_ symbol: String) -> String {
    guard let text = lab_demangle(symbol) else { return symbol }
    defer { free(text) }
    return String(cString: text)
  }
}
