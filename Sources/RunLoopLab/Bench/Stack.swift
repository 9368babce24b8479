// SPDX-License-Identifier: Apache-2.0

import Runtime

/// The program and the libraries in the process.
///
/// Found once: the search reads every file that is mapped into memory, and would crash if another thread unmapped one
/// meanwhile, as looking up symbols does.
private let images = ImageMap.capture()

/// The functions on the calling thread's stack, innermost first, by the names in the program's symbol tables.
///
/// A function without a symbol is left out, and so is one that was inlined: to find those, the debugger's information
/// would have to be read.
func stack() -> [String] {
  let trace = try? Backtrace.capture(images: images).symbolicated(with: images, options: .useSymbolCache)
  return (trace?.frames ?? []).compactMap { $0.symbol?.name }
}

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
  let trace = try? Backtrace.capture(images: images).symbolicated(with: images, options: .useSymbolCache)
  // The first is this function, and the second the one that has called it.
  return (trace?.frames ?? []).dropFirst(2).compactMap { frame in
    guard let address = UInt64(frame.captured.originalProgramCounter), address != 0 else { return nil }
    let name = callOuts(in: [frame.symbol?.name ?? ""])
    return Caller(address: address, callOut: name == "none" ? nil : name)
  }
}
