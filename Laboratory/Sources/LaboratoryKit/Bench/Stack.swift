// SPDX-License-Identifier: Apache-2.0

import CLaboratory
import Glibc
import RunLoopCore
import Synchronization

/// Returns the functions on the calling thread's stack, innermost first, by the names in the program's symbol tables.
///
/// Functions without symbols and inlined functions are omitted: finding them would require debugging information.
@inline(never)
func stack() -> [String] {
  var addresses = [UInt](repeating: 0, count: deepestStack)
  let count = lab_stack(&addresses, Int32(deepestStack))
  return addresses.prefix(Int(count)).compactMap { FunctionNames.shared.name(UInt64($0)) }
}

/// The maximum number of frames examined.
private let deepestStack = 256

/// Returns the call-out functions among the functions of a stack, without their parameters, or `none`.
func callOuts(in stack: [String]) -> String {
  let names = stack.compactMap(callOut)
  return names.isEmpty ? "none" : names.joined(separator: " < ")
}

/// Returns the name of a function without its parameters if the loop makes call-outs with it.
private func callOut(_ function: String) -> Substring? {
  let name = function.prefix { $0 != "(" }.split(separator: " ").last ?? ""
  return name.hasPrefix("runLoopIs") ? name : nil
}

/// Returns the kind of the call-out that the innermost run of the calling thread's loop is making, or `none`.
///
/// Call-outs of observers are not included.
@inline(never)
func currentCallOut() -> String { kindOfCallOut(in: stack()) }

/// Returns the kind of the call-out that the innermost run of a stack is making, or `none`.
func kindOfCallOut(in stack: [String]) -> String {
  let functions = stack.prefix { !$0.contains("RunLoop.run(") }.compactMap(callOut).map(String.init)
  // Work that is handed to a thread is performed by a source.
  if functions.contains("runLoopIsPerformingHandOffs") { return "source0" }
  return functions.lazy.compactMap { kindsOfCallOuts[$0] }.first ?? "none"
}

private let kindsOfCallOuts = [
  "runLoopIsCallingOutToABlock": "block", "runLoopIsCallingOutToAnExecutorJob": "block",
  "runLoopIsCallingOutToASource0": "source0", "runLoopIsCallingOutToASource1": "source1",
  "runLoopIsCallingOutToATimer": "timer", "runLoopIsServicingTheMainDispatchQueue": "mainQueue",
]

/// Returns the loop's own part of a stack: from the innermost call-out to the outermost run.
func loopPart(of stack: [String]) -> ArraySlice<String> {
  guard let first = stack.firstIndex(where: { $0.contains("runLoopIs") }),
    let last = stack.lastIndex(where: { $0.contains("RunLoop.run(") }), first <= last
  else { return [] }
  return stack[first...last]
}

/// A function on the stack that has called another.
struct Caller: Sendable {
  /// The return address of the call.
  let address: UInt64
  /// The kind of call-out, or nil if the function is none.
  let callOut: String?
}

/// Returns the callers of the calling function, the innermost first.
@inline(never)
func callers() -> [Caller] {
  var addresses = [UInt](repeating: 0, count: deepestStack)
  let count = lab_stack(&addresses, Int32(deepestStack))
  // Skips this function and its caller.
  return addresses.prefix(Int(count)).dropFirst(2).map { address in
    let name = callOuts(in: [FunctionNames.shared.name(UInt64(address)) ?? ""])
    return Caller(address: UInt64(address), callOut: name == "none" ? nil : name)
  }
}

/// The names of this process's functions, read from the files of its program and libraries.
///
/// Can be used from any thread.
final class FunctionNames: Sendable {
  static let shared = FunctionNames()

  /// The symbols of one file.
  private final class Table: @unchecked Sendable {
    // Sendable: it is immutable.
    private let symbols: OpaquePointer

    init?(_ path: String) {
      guard let symbols = lab_symbols_read(path) else { return nil }
      self.symbols = symbols
    }

    func name(at distance: UInt64) -> String? { lab_symbols_find(symbols, distance).map { String(cString: $0) } }

    deinit { lab_symbols_free(symbols) }
  }

  private struct State {
    /// The tables by their files' base addresses; nil for a file without symbols.
    var tables: [UInt64: Table?] = [:]
    var names: [UInt64: String?] = [:]
  }

  private let state = Mutex(State())

  /// Returns the function that contains a return address, or nil if it has no symbol.
  func name(_ address: UInt64) -> String? {
    state.withLock { state in
      if let known = state.names[address] { return known }
      // The call may be the last instruction of its function, so the address before it is looked up.
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
