// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments

/// The choice of the user's function among those at an address.
package enum FrameChoice: Equatable {
  case place(CodePlace)
  /// The function only calls another one, with this symbol.
  case forwards(symbol: String, CodePlace)
  /// A thunk, or a function of this package or the standard library.
  case nobodys

  /// Chooses the function whose first instruction is at the address.
  package static func function(_ frames: [CodeFrame]) -> FrameChoice {
    guard let outermost = frames.last else { return .nobodys }
    if isThunk(outermost.symbol) || isOurs(outermost.symbol) { return .nobodys }
    if let type = type(outermost.symbol) { return .place(CodePlace(function: type)) }
    guard isForwarder(outermost.symbol) else { return place(outermost).map { .place($0) } ?? .nobodys }
    let target = String(bare(outermost.symbol).dropLast(2))
    if isThunk(target) || isOurs(target) { return .nobodys }
    // Usually the closure was inlined into it.
    if let inlined = frames.dropLast().last(where: { $0.symbol == target && $0.line > 0 }), let found = place(inlined) {
      return .place(found)
    }
    return .forwards(symbol: target, CodePlace(function: demangled(target)))
  }

  /// Returns the place of a call: the innermost function outside this package and the standard library.
  package static func site(_ frames: [CodeFrame]) -> CodePlace? {
    frames.lazy.filter { !isThunk($0.symbol) && !isOurs($0.symbol) }.compactMap { place($0) }.first
  }

  /// Converts a frame to a place.
  static func place(_ frame: CodeFrame) -> CodePlace? {
    guard !frame.symbol.isEmpty else { return nil }
    let line = frame.line > 0 ? frame.line : nil
    return CodePlace(function: demangled(frame.symbol), file: line == nil ? nil : frame.file, line: line)
  }

  /// Returns whether a function only converts between calling conventions.
  static func isThunk(_ symbol: String) -> Bool {
    guard symbol.hasPrefix("$s") else { return false }
    let name = bare(symbol)
    let base = name.hasSuffix("TA") ? name.dropLast(2) : name
    return base.hasSuffix("TR") || base.hasSuffix("TRTA") || demangled(symbol).contains("reabstraction thunk")
  }

  /// Returns whether a function is the entry for C of a Swift function, which is often inlined into it.
  static func isEntry(_ symbol: String, of function: String) -> Bool {
    bare(symbol).hasSuffix("To") && bare(symbol).dropLast(2) == bare(function)
  }

  /// Returns a Swift symbol without the suffix of the optimizer, such as `.7`.
  private static func bare(_ symbol: String) -> Substring {
    symbol.hasPrefix("$s") ? symbol.prefix { $0 != "." } : symbol[...]
  }

  /// The type of a metadata accessor, which stands in for one of the type's methods because it is never called out
  /// itself.
  private static func type(_ symbol: String) -> String? {
    guard symbol.hasPrefix("$s"), bare(symbol).hasSuffix("Ma") else { return nil }
    let name = demangled(symbol)
    let prefix = "type metadata accessor for "
    return name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : nil
  }

  /// Returns whether a function only forwards to a closure with its captured values.
  static func isForwarder(_ symbol: String) -> Bool { symbol.hasPrefix("$s") && bare(symbol).hasSuffix("TA") }

  /// Returns whether a function makes a loop's call-outs, so that frames further out did not call the inner ones.
  static func isCallOut(_ symbol: String) -> Bool {
    symbol.hasPrefix("$s11RunLoopCore")
      && ["runLoopIsCallingOut", "runLoopIsPerforming", "runLoopIsServicing"].contains {
        symbol.contains($0)
      }
  }

  /// Returns whether a library belongs to the system or the toolchain and contains no user code.
  static func isSystemLibrary(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    let names = [
      "libc.so", "libc-", "libm.so", "libpthread", "ld-linux", "libstdc++", "libgcc_s", "libswift", "libdispatch",
      "libBlocksRuntime", "libFoundation", "lib_Foundation", "libclang_rt",
    ]
    return name == CodeImage.kernelLibrary[...] || names.contains { name.hasPrefix($0) }
  }

  /// The modules of the toolchain.
  private static let toolchain: Set<String> = [
    "Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking", "Swift", "Synchronization",
    "_Concurrency",
  ]

  /// The modules of this package.
  private static let package: Set<String> = [
    "RunLoopCore", "RunLoopThreads", "RunLoopSystemEvents", "RunLoopSockets", "RunLoopMessages",
    "RunLoopTransactions", "RunLoopFoundation", "RunLoopKit", "RunLoopGLib", "RunLoopLibuv",
    "RunLoopDisplay", "RunLoopDisplayTesting", "RunLoopHTTP", "RunLoopHTTPTesting",
    "RunLoopURLConnection",
    "RunLoopInstruments", "RunLoopTesting",
  ]

  /// Returns whether a function belongs to this package or the toolchain's libraries.
  ///
  /// A program's extension of one of their types belongs to the program.
  static func isOurs(_ symbol: String) -> Bool {
    symbol.hasPrefix("crl_") || isToolchains(symbol) || isOf(package, symbol)
  }

  /// Returns whether a function belongs to the toolchain's libraries.
  static func isToolchains(_ symbol: String) -> Bool {
    ["swift_", "_dispatch", "_swift", "_ZN5swift"].contains { symbol.hasPrefix($0) } || isOf(toolchain, symbol)
      || ["$ss", "$sSc"].contains { symbol.hasPrefix($0) } && isWithoutModule(symbol)
  }

  private static func isWithoutModule(_ symbol: String) -> Bool {
    SwiftNames.text(String(bare(symbol)), isQualified: true).flatMap(declaringModule) == nil
  }

  private static func isOf(_ modules: Set<String>, _ symbol: String) -> Bool {
    guard symbol.hasPrefix("$s") else { return false }
    if let text = SwiftNames.text(String(bare(symbol)), isQualified: true), let module = declaringModule(text) {
      return modules.contains(module)
    }
    // The module comes first, as its length and name. Within it, a name with the same beginning is abbreviated.
    return modules.contains { symbol.hasPrefix("$s\($0.utf8.count)\($0)") }
  }

  /// Returns the module of a function's declaration, from its fully qualified name, or nil if the name does not
  /// contain it.
  ///
  /// The name relates the function to a declaration, as in `closure #1 () -> () in Module.Type.method() -> ()`. An
  /// extension of another module's type is `(extension in Module):OtherModule.Type.method()`.
  static func declaringModule(_ name: String) -> String? {
    let words = words(name)
    let start = words.lastIndex { ["in", "of", "for"].contains($0) }.map { $0 + 1 } ?? 0
    let declaration = words[start...]
    let mark = "(extension in "
    for word in declaration {
      if word.hasPrefix(mark) { return String(word.dropFirst(mark.count).prefix { $0 != ")" }) }
      // A number in parentheses, or the types of a thunk.
      if word.hasPrefix("(") || word.hasPrefix("@") { continue }
      if let dot = word.firstIndex(of: ".") { return String(word[..<dot]) }
    }
    return declaration.count == 1 ? declaration.first.map(String.init) : nil
  }

  /// Splits a name into words, ignoring spaces inside brackets.
  private static func words(_ name: String) -> [Substring] {
    var words: [Substring] = []
    var start = name.startIndex
    // The description of an optimized function's arguments can contain unclosed brackets inside closed ones.
    var open: [Character] = []
    func close(_ bracket: Character) { if let last = open.lastIndex(of: bracket) { open.removeSubrange(last...) } }
    var last: Character = " "
    for index in name.indices {
      let character = name[index]
      switch character {
      case "(", "<", "[": open.append(character)
      case ")": close("(")
      case "]": close("[")
      case ">" where last != "-": close("<")
      case " " where open.isEmpty:
        words.append(name[start..<index])
        start = name.index(after: index)
      default: break
      }
      last = character
    }
    words.append(name[start...])
    return words.filter { !$0.isEmpty }
  }

  /// Returns a symbol's readable name, or the symbol itself if it is not a Swift symbol.
  static func demangled(_ symbol: String) -> String {
    guard symbol.hasPrefix("$s"), var name = SwiftNames.text(String(bare(symbol)), isQualified: false) else {
      return symbol
    }
    // The entry for C, and the partial functions of an asynchronous function, are shown as the function.
    for part in ["@objc ", "suspend resume partial function for ", "await resume partial function for "] {
      if let range = name.firstRange(of: part) { name = String(name[range.upperBound...]) }
    }
    // The function that contains a closure in main.swift has no name.
    if name.hasSuffix(" in ") { name += "top-level code" }
    return name
  }
}
