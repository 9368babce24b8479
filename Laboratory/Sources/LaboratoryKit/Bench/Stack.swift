// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import CRunLoopTools
import RunLoopCore
import RunLoopLibC
import Synchronization

/// The functions on the calling thread's stack, innermost first, by the names in the program's symbol tables.
///
/// A function without a symbol is left out, and so is one that was inlined: to find those, the debugger's information
/// would have to be read.
@inline(never)
func stack() -> [String] {
  var addresses = [UInt](repeating: 0, count: deepestStack)
  let count = crlt_stack(&addresses, Int32(deepestStack))
  return addresses.prefix(Int(count)).compactMap { FunctionNames.shared.name(UInt64($0)) }
}

/// How many calls of a stack are looked at.
private let deepestStack = 256

/// The call-out functions among the functions of a stack, without their parameters, or `none`.
func callOuts(in stack: [String]) -> String {
  let names = stack.compactMap { function -> Substring? in
    let name = function.prefix { $0 != "(" }.split(separator: " ").last ?? ""
    return name.hasPrefix("runLoopIs") ? name : nil
  }
  return names.isEmpty ? "none" : names.joined(separator: " < ")
}

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
  let count = crlt_stack(&addresses, Int32(deepestStack))
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
      guard let symbols = crlt_symbols_read(path) else { return nil }
      self.symbols = symbols
    }

    func name(at distance: UInt64) -> String? { crlt_symbols_find(symbols, distance).map { String(cString: $0) } }

    deinit { crlt_symbols_free(symbols) }
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
    var code = crl_code()
    guard crl_code_find(address, &code) != 0 else { return nil }
    if tables[code.base] == nil { tables[code.base] = .some(Table(path(code))) }
    if let table = tables[code.base] ?? nil { return table.name(at: address &- code.base) }
    return code.symbol.map { String(cString: $0) }
  }

  /// The path of the program itself may be relative to a directory that was another when it was started.
  private static func path(_ code: crl_code) -> String {
    var program = crl_code()
    let isProgram = crl_code_find(crlt_program_address(), &program) != 0 && program.base == code.base
    return isProgram ? "/proc/self/exe" : String(cString: code.path)
  }

  private static func demangled(_ symbol: String) -> String {
    guard let text = crlt_demangle(symbol, 0) else { return symbol }
    defer { free(text) }
    return String(cString: text)
  }
}
