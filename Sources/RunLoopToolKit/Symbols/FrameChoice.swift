// SPDX-License-Identifier: Apache-2.0

/// Which of the functions at an address is the user's.
package enum FrameChoice: Equatable {
  case place(CodePlace)
  /// The function only calls another, of this symbol.
  case forwards(symbol: String, CodePlace)
  /// It is a thunk, or one of this package or of the standard library.
  case nobodys

  /// The function that is called at its first instruction.
  package static func function(_ frames: [CodeFrame]) -> FrameChoice {
    guard let outermost = frames.last else { return .nobodys }
    if isThunk(outermost.symbol) || isOurs(outermost.symbol) { return .nobodys }
    if let type = type(outermost.symbol) { return .place(CodePlace(function: type)) }
    guard isForwarder(outermost.symbol) else { return place(outermost).map { .place($0) } ?? .nobodys }
    let target = String(bare(outermost.symbol).dropLast(2))
    if isThunk(target) || isOurs(target) { return .nobodys }
    // Mostly the closure was inlined into it.
    if let inlined = frames.dropLast().last(where: { $0.symbol == target && $0.line > 0 }), let found = place(inlined) {
      return .place(found)
    }
    return .forwards(symbol: target, CodePlace(function: demangled(target)))
  }

  /// The place that a call was made from: the innermost function that is neither ours nor the standard library's.
  package static func site(_ frames: [CodeFrame]) -> CodePlace? {
    frames.lazy.filter { !isThunk($0.symbol) && !isOurs($0.symbol) }.compactMap { place($0) }.first
  }

  /// A frame as a place.
  static func place(_ frame: CodeFrame) -> CodePlace? {
    guard !frame.symbol.isEmpty else { return nil }
    let line = frame.line > 0 ? frame.line : nil
    return CodePlace(function: demangled(frame.symbol), file: line == nil ? nil : frame.file, line: line)
  }

  /// Whether a function only turns one convention of calling into another.
  static func isThunk(_ symbol: String) -> Bool {
    guard symbol.hasPrefix("$s") else { return false }
    let name = bare(symbol)
    let base = name.hasSuffix("TA") ? name.dropLast(2) : name
    return base.hasSuffix("TR") || base.hasSuffix("TRTA") || demangled(symbol).contains("reabstraction thunk")
  }

  /// A symbol of Swift without what the optimizer has added behind it, such as `.7` for one of several alike.
  private static func bare(_ symbol: String) -> Substring {
    symbol.hasPrefix("$s") ? symbol.prefix { $0 != "." } : symbol[...]
  }

  /// The type whose metadata a function finds: it stands for a method of the type's, as nobody calls it out.
  private static func type(_ symbol: String) -> String? {
    guard symbol.hasPrefix("$s"), bare(symbol).hasSuffix("Ma") else { return nil }
    let name = demangled(symbol)
    let prefix = "type metadata accessor for "
    return name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : nil
  }

  /// Whether a function hands on what a closure has captured.
  static func isForwarder(_ symbol: String) -> Bool { symbol.hasPrefix("$s") && bare(symbol).hasSuffix("TA") }

  /// Whether a function is one by which a loop calls out: what stands behind it has not called what stands before it.
  static func isCallOut(_ symbol: String) -> Bool {
    symbol.hasPrefix("$s11RunLoopCore")
      && ["runLoopIsCallingOut", "runLoopIsPerforming", "runLoopIsServicing"].contains {
        symbol.contains($0)
      }
  }

  /// Whether a library is the system's or the toolchain's, of which nothing is the user's.
  static func isSystemLibrary(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    let names = [
      "libc.so", "libc-", "libm.so", "libpthread", "ld-linux", "libstdc++", "libgcc_s", "libswift", "libdispatch",
      "libBlocksRuntime", "libFoundation", "lib_Foundation", "libclang_rt",
    ]
    return names.contains { name.hasPrefix($0) }
  }

  /// The modules of the toolchain.
  private static let toolchain: Set<String> = [
    "Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking", "Swift", "Synchronization",
    "_Concurrency",
  ]

  /// The modules of this package.
  private static let package: Set<String> = [
    "RunLoopCore", "RunLoopThreads", "RunLoopSystemEvents", "RunLoopSockets", "RunLoopMessages",
    "RunLoopTransactions", "RunLoopFoundation", "RunLoopKit",
    "RunLoopDisplay", "RunLoopDisplayTesting", "RunLoopHTTP", "RunLoopHTTPTesting",
    "RunLoopURLConnection",
    "RunLoopInstruments", "RunLoopTesting",
  ]

  /// Whether a function is one of this package or of the toolchain's libraries.
  ///
  /// What a program adds to a type of theirs by an extension is the program's.
  static func isOurs(_ symbol: String) -> Bool {
    symbol.hasPrefix("crl_") || isToolchains(symbol) || isOf(package, symbol)
  }

  /// Whether a function is one of the toolchain's libraries.
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
    // A module stands first, as its length and its name; a name within it that begins likewise is written shorter.
    return modules.contains { symbol.hasPrefix("$s\($0.utf8.count)\($0)") }
  }

  /// The module that a function is declared in, of its name with all modules; nil: the name does not say it.
  ///
  /// The name says what the function is to which declaration, as `closure #1 () -> () in Module.Type.method() -> ()`.
  /// An extension of another module's type is `(extension in Module):OtherModule.Type.method()`.
  static func declaringModule(_ name: String) -> String? {
    let words = words(name)
    let start = words.lastIndex { ["in", "of", "for"].contains($0) }.map { $0 + 1 } ?? 0
    let declaration = words[start...]
    let mark = "(extension in "
    for word in declaration {
      if word.hasPrefix(mark) { return String(word.dropFirst(mark.count).prefix { $0 != ")" }) }
      // A number in brackets, or types that a thunk is between.
      if word.hasPrefix("(") || word.hasPrefix("@") { continue }
      if let dot = word.firstIndex(of: ".") { return String(word[..<dot]) }
    }
    return declaration.count == 1 ? declaration.first.map(String.init) : nil
  }

  /// The words of a name; what stands in brackets belongs to the word around it.
  private static func words(_ name: String) -> [Substring] {
    var words: [Substring] = []
    var start = name.startIndex
    // What an optimized function says of its arguments has brackets that are not closed, within others that are.
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

  /// A symbol as people read it; what is no name of Swift stays.
  static func demangled(_ symbol: String) -> String {
    guard symbol.hasPrefix("$s"), var name = SwiftNames.text(String(bare(symbol)), isQualified: false) else {
      return symbol
    }
    // The parts of an asynchronous function are identified by the function.
    for part in ["suspend resume partial function for ", "await resume partial function for "] {
      if let range = name.firstRange(of: part) { name = String(name[range.upperBound...]) }
    }
    // The function around a closure of a main.swift has no name.
    if name.hasSuffix(" in ") { name += "top-level code" }
    return name
  }
}
