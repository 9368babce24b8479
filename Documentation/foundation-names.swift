// SPDX-License-Identifier: Apache-2.0

// Keeps the list of Foundation's names that mention a type which RunLoopKit has too, and what has become of each.
//
//   foundation-names <list> <page> <sources> <the toolchain's symbol graphs> <our symbol graphs> <toolchain> [option]
//
// The list's names are the toolchain's; what has become of them, and why, is written by hand. It fails if the list
// lacks a name or has one too many, if a name is undecided, if ours is declared otherwise, as with another result, and
// if the symbol graphs disprove what the list says. Without an option the page is written. `--check` compares the page;
// `--update` brings the list to the toolchain's state; `--symbols` prints the entries with the compiler's names.

import Foundation

/// What is wrong with the list.
struct Failure: Error {
  var lines: [String]
}

// MARK: Symbol graphs

/// The parts of a symbol graph that are looked at.
struct Graph: Decodable {
  var symbols: [Symbol]
  var relationships: [Relationship]
}

struct Symbol: Decodable {
  struct Kind: Decodable { var identifier: String }
  struct Identifier: Decodable { var precise: String }
  struct Parameter: Decodable { var declarationFragments: [Fragment]? }
  struct Signature: Decodable { var parameters: [Parameter]? }
  struct Fragment: Decodable {
    var kind: String
    var spelling: String
    var preciseIdentifier: String?
  }

  var kind: Kind
  var identifier: Identifier
  var accessLevel: String
  var pathComponents: [String]
  var declarationFragments: [Fragment]
  var functionSignature: Signature?

  var path: String { pathComponents.joined(separator: ".") }
  var declaration: String {
    declarationFragments.map(\.spelling).joined().split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
  /// The declaration without what is the same to a caller, such as the parameters' inner names.
  var use: String {
    let words: Set = ["public", "open", "override", "convenience", "nonisolated", "consuming", "@discardableResult"]
    let whole = declarationFragments.filter { $0.kind != "internalParam" }.map(\.spelling).joined()
    let kept = whole.split(whereSeparator: \.isWhitespace).map(String.init).filter { !words.contains($0) }
    var text = kept.joined(separator: " ").replacing(" :", with: ":")
    let same = [("class var", "static var"), ("class func", "static func"), ("TimeInterval", "Double")]
    for (one, other) in same + [("NSNotification", "Notification")] { text = text.replacing(one, with: other) }
    if text.contains("let ") { text = text.replacing("let ", with: "var ") + " { get }" }
    if text.contains("var "), !text.contains("{") { text += " { get set }" }
    return text
  }
  /// The types that the declaration mentions, as the compiler names them.
  var mentioned: [String] {
    let parameters = functionSignature?.parameters?.flatMap { $0.declarationFragments ?? [] } ?? []
    return (declarationFragments + parameters).compactMap(\.preciseIdentifier)
  }
}

struct Relationship: Decodable {
  var kind: String
  var source: String
  var target: String
  var targetFallback: String?
}

/// The symbol graphs of a folder.
struct Library {
  private(set) var symbols: [(module: String, symbol: Symbol)] = []
  /// The paths by the compiler's names.
  private(set) var paths: [String: [String]] = [:]
  /// The compiler's names of the types that stand in no other.
  private(set) var types: [String: String] = [:]
  /// What the types inherit from and conform to.
  private(set) var kinships: [(type: String, other: String)] = []

  /// Reads the graphs; a module whose types shall not count is left out of `types`.
  init(_ folder: String, withoutTypesOf foreign: String = "") throws {
    var relationships: [Relationship] = []
    for file in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() where file.hasSuffix(".json") {
      // What a module adds to another is in a graph named "Module@Other".
      let module = String(file.prefix { $0 != "@" && $0 != "." })
      let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + file))
      let graph = try JSONDecoder().decode(Graph.self, from: data)
      symbols += graph.symbols.map { (module, $0) }
      relationships += graph.relationships
    }
    guard !symbols.isEmpty else { throw Failure(lines: ["\(folder): no symbol graphs"]) }
    let kinds: Set = ["swift.class", "swift.struct", "swift.enum", "swift.protocol", "swift.typealias"]
    for (module, symbol) in symbols {
      paths[symbol.identifier.precise] = symbol.pathComponents
      if symbol.pathComponents.count == 1, kinds.contains(symbol.kind.identifier), module != foreign {
        types[symbol.path] = symbol.identifier.precise
      }
    }
    for relationship in relationships where ["inheritsFrom", "conformsTo"].contains(relationship.kind) {
      let other = relationship.targetFallback ?? paths[relationship.target]?.joined(separator: ".")
      guard let type = paths[relationship.source], let other else { continue }
      kinships.append((type.joined(separator: "."), other.replacing(/^[A-Za-z_]+\./, with: "")))
    }
  }
}

// MARK: The list

/// What tells one entry of the list from another.
struct Name: Hashable {
  var module: String
  var path: String
  var declaration: String

  /// The heading under which it stands: C's functions need none each.
  var heading: String { module == "CoreFoundation" ? module : "\(module): \(type)" }
  /// The type in which it stands, if it is not a function.
  var type: String { String(path.prefix { $0 != "." && $0 != "(" }) }
  /// The name without arguments.
  var function: Substring { path.prefix { $0 != "(" } }
  /// What the entries are sorted by.
  var key: [String] { [module, type, path, declaration] }
}

/// What has become of a name.
enum Fate: String {
  /// Our type has it.
  case ours
  /// Another of Foundation's types has an overload that takes ours; the note names its file.
  case overload
  /// It stays what it is.
  case unchanged
  /// It cannot be had; the note says why.
  case none
  case undecided
}

struct Entry {
  var name: Name
  var fate = Fate.undecided
  var note = ""
  var use = ""
  /// What the toolchain's graph calls it.
  var kind = ""
  var identifier = ""
  /// Whether a subclass may override it, or inherit from it.
  var isOpen = false
}

struct List {
  var preamble: [String] = []
  var toolchain = ""
  var entries: [Entry] = []

  init(_ path: String) throws {
    var wrong: [String] = []
    var module = ""
    var seen: Set<Name> = []
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      if line.hasPrefix("//") {
        preamble.append(String(line))
      } else if line.hasPrefix("# ") {
        module = String(line.dropFirst(2).prefix { $0 != ":" })
      } else {
        let columns = line.split(separator: " | ", omittingEmptySubsequences: false).map(String.init)
        if columns.count == 2, columns[0] == "toolchain" {
          toolchain = columns[1]
        } else if 3...4 ~= columns.count, let fate = Fate(rawValue: columns[0]) {
          let name = Name(module: module, path: columns[1], declaration: columns[2])
          if !seen.insert(name).inserted { wrong.append("\(path): a line is there twice: \(line)") }
          entries.append(Entry(name: name, fate: fate, note: columns.count == 4 ? columns[3] : ""))
        } else {
          wrong.append("\(path): not a line of the list: \(line)")
        }
      }
    }
    guard wrong.isEmpty else { throw Failure(lines: wrong) }
  }

  var text: String {
    var text = preamble.joined(separator: "\n") + "\n\ntoolchain | \(toolchain)\n"
    var heading = ""
    for entry in entries {
      if entry.name.heading != heading {
        heading = entry.name.heading
        text += "\n# \(heading)\n"
      }
      text += [entry.fate.rawValue, entry.name.path, entry.name.declaration].joined(separator: " | ")
      text += entry.note.isEmpty ? "\n" : " | \(entry.note)\n"
    }
    return text
  }
}

// MARK: What the toolchain has

/// The toolchain's names that belong into the list.
func names(of toolchain: Library, beside ours: Library) -> [Entry] {
  let shadowed = Set(toolchain.types.keys).intersection(ours.types.keys)
  let owners = Set(shadowed.compactMap { toolchain.types[$0] })
  var modules: [String: String] = [:]
  var found: [Name: Entry] = [:]
  func note(_ module: String, _ path: String, _ declaration: String, kind: String, symbol: Symbol? = nil) {
    let name = Name(module: module, path: path, declaration: declaration)
    found[name] = Entry(
      name: name, use: path.contains(".") ? symbol?.use ?? "" : "", kind: kind,
      identifier: symbol?.identifier.precise ?? "", isOpen: symbol?.accessLevel == "open")
  }

  /// Whether a type is one of the shadowed ones, or stands in one of them.
  func isShadowed(_ identifier: String) -> Bool {
    guard let outermost = toolchain.paths[identifier]?.first else { return false }
    return toolchain.types[outermost].map(owners.contains) ?? false
  }

  for (module, symbol) in toolchain.symbols {
    if symbol.pathComponents.count == 1 { modules[symbol.path] = modules[symbol.path] ?? module }
    let isListed: Bool
    if module == "CoreFoundation" {
      // No type of ours has the name of one of C's: these are told by the word.
      isListed =
        ["swift.func", "swift.var"].contains(symbol.kind.identifier)
        && (symbol.path + symbol.declaration).contains("RunLoop")
    } else if symbol.pathComponents.dropLast() == ["NSNotification", "Name"] {
      isListed = shadowed.contains { symbol.path.contains($0) }
    } else {
      isListed = isShadowed(symbol.identifier.precise) || symbol.mentioned.contains(where: isShadowed)
    }
    guard isListed else { continue }
    note(module, symbol.path, symbol.declaration, kind: symbol.kind.identifier, symbol: symbol)
  }
  for (type, other) in toolchain.kinships {
    let outermost = String(type.prefix { $0 != "." })
    guard let module = modules[outermost], module != "CoreFoundation" else { continue }
    guard shadowed.contains(outermost) || shadowed.contains(other) else { continue }
    note(module, type, "\(type) : \(other)", kind: "kinship")
  }
  return found.values.sorted { $0.name.key.lexicographicallyPrecedes($1.name.key) }
}

extension Library {
  /// The paths at which a member may be found: that of the type, and those of its superclasses.
  func paths(ofMember path: String) -> [String] {
    guard let dot = path.firstIndex(of: ".") else { return [path] }
    let superclasses = kinships.filter { $0.type == path[..<dot] && types[$0.other] != nil }
    return [path] + superclasses.flatMap { paths(ofMember: $0.other + path[dot...]) }
  }
}

/// What our symbol graphs, sources and guide say against the list.
func objections(to entries: [Entry], of toolchain: Library, ours: Library, sources: String) throws -> [String] {
  let guide = try String(contentsOfFile: "\(sources)/RunLoopKit.docc/Porting.md", encoding: .utf8)
  let paths = Set(ours.symbols.map(\.symbol.path))
  let uses = Dictionary(grouping: ours.symbols, by: \.symbol.path).mapValues { Set($0.map(\.symbol.use)) }
  let openPaths = Set(ours.symbols.filter { $0.symbol.accessLevel == "open" }.map(\.symbol.path))
  let kinships = Set(ours.kinships.map { "\($0.type) : \($0.other)" })
  let had = Set(entries.filter { $0.fate == .ours || $0.fate == .overload }.map(\.name.path))
  return entries.compactMap { entry in
    let isThere =
      entry.kind == "kinship"
      ? kinships.contains(entry.name.declaration)
      : toolchain.paths(ofMember: entry.name.path).contains(where: paths.contains)
    let same = toolchain.paths(ofMember: entry.name.path).filter { uses[$0]?.contains(entry.use) ?? false }
    let isSame = entry.use.isEmpty || !same.isEmpty
    let name = "\(entry.name.module).\(entry.name.path), \(entry.name.declaration)"
    switch entry.fate {
    case .undecided: return "undecided: \(name)"
    case .ours where !isThere: return "said to be ours, and is not: \(name)"
    case .ours where isThere && !isSame, .overload where isThere && !isSame: return "declared otherwise: \(name)"
    case .ours where entry.isOpen && !openPaths.contains(entry.name.path) && entry.note.isEmpty:
      // What holds for a type holds for its members.
      let isType = !entry.name.path.contains(".")
      guard isType || openPaths.contains(entry.name.type) else { return nil }
      return "ours cannot be overridden, and no note says why: \(name)"
    case .unchanged where entry.name.module == "CoreFoundation" && !guide.contains("`\(entry.name.function)"):
      return "the porting guide does not say what to write instead of \(name)"
    case .overload where !isThere: return "said to have an overload, and has none: \(name)"
    case .overload where !FileManager.default.fileExists(atPath: "\(sources)/\(entry.note)"):
      return "said to have an overload in \(entry.note), which is not in \(sources): \(name)"
    case .none where entry.note.isEmpty: return "cannot be had, for no reason: \(name)"
    case .none where isThere && (entry.kind == "kinship" || !had.contains(entry.name.path)):
      return "said not to be had, and is: \(name)"
    default: return nil
    }
  }
}

// MARK: The page

func page(_ list: List) -> String {
  var text = """
    # Foundation's names

    Every name of Foundation on Linux that mentions a type of ours, and what has become of it.

    ## Overview

    *Ours*: our type has it, and code that uses it keeps its text. *Overload*: another of Foundation's types has it, and
    takes our type too. *Unchanged*: it is what it was. *None*: it cannot be had.

    This page is made by `Documentation/foundation-names` from `Documentation/foundation-names.txt`, which the symbol
    graphs of the toolchain and of these libraries confirm. The toolchain is \(list.toolchain).

    """
  var heading = ""
  var module = ""
  for entry in list.entries {
    if entry.name.module == "CoreFoundation" { continue }
    let parts = entry.name.heading.split(separator: ": ").map(String.init)
    if entry.name.module != module {
      module = entry.name.module
      text += "\n## \(module)\n"
    }
    if entry.name.heading != heading {
      heading = entry.name.heading
      text += "\n### \(parts.last ?? "")\n\n| Name | What has become of it |\n|---|---|\n"
    }
    let isPlain = entry.note.isEmpty || entry.fate == .overload
    let fate = entry.fate.rawValue.capitalized + (isPlain ? "" : ": " + entry.note)
    let place = entry.kind == "kinship" ? [] : entry.name.path.split(separator: ".").dropFirst().dropLast()
    let nested = place.isEmpty ? "" : ", of `\(place.joined(separator: "."))`"
    text += "| `\(entry.name.declaration)`\(nested) | \(fate) |\n"
  }
  return text
}

// MARK: The program

func run(_ arguments: [String], option: String?) throws {
  let (path, pagePath, sources) = (arguments[0], arguments[1], arguments[2])
  let toolchain = try Library(arguments[3], withoutTypesOf: "CoreFoundation")
  let ours = try Library(arguments[4])
  var list = try List(path)
  let found = names(of: toolchain, beside: ours)
  let decided = Dictionary(uniqueKeysWithValues: list.entries.map { ($0.name, $0) })
  let names = Set(found.map(\.name))

  if option != "--update" {
    let missing = found.filter { decided[$0.name] == nil }.map(\.name)
    let gone = list.entries.map(\.name).filter { !names.contains($0) }
    let wrong =
      missing.map { "not on the list: \($0.module).\($0.path), \($0.declaration)" }
      + gone.map { "on the list, and not in the toolchain: \($0.module).\($0.path), \($0.declaration)" }
    guard wrong.isEmpty else {
      throw Failure(
        lines: wrong + ["\(path) was made for \(list.toolchain), this is \(arguments[5]): run \(program) --update"])
    }
  }
  list.entries = found.map { entry in
    var entry = entry
    entry.fate = decided[entry.name]?.fate ?? .undecided
    entry.note = decided[entry.name]?.note ?? ""
    return entry
  }
  if option == "--symbols" {
    for entry in list.entries {
      let paths = toolchain.paths(ofMember: entry.name.path)
      let same = ours.symbols.filter { paths.contains($0.symbol.path) }.map(\.symbol.identifier.precise)
      let columns = [entry.fate.rawValue, entry.name.module, entry.kind, entry.identifier, entry.name.path]
      print((columns + [entry.name.declaration, same.joined(separator: " ")]).joined(separator: "\t"))
    }
    return
  }
  if option == "--update" {
    list.toolchain = arguments[5]
    try list.text.write(toFile: path, atomically: true, encoding: .utf8)
  }
  let wrong = try objections(to: list.entries, of: toolchain, ours: ours, sources: sources)
  guard wrong.isEmpty else { throw Failure(lines: wrong) }
  if option == "--check" {
    guard try String(contentsOfFile: pagePath, encoding: .utf8) == page(list) else {
      throw Failure(lines: ["\(pagePath) is not current: run \(program)"])
    }
  } else {
    try page(list).write(toFile: pagePath, atomically: true, encoding: .utf8)
  }
  let counts = Dictionary(grouping: list.entries, by: \.fate.rawValue).mapValues(\.count)
  let texts = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
  print("\(list.entries.count) names: " + texts.joined(separator: ", "))
}

let program = "Documentation/foundation-names"
let arguments = Array(CommandLine.arguments.dropFirst())
let option = arguments.dropFirst(6).first
guard 6...7 ~= arguments.count, [nil, "--check", "--update", "--symbols"].contains(option) else {
  print("usage: foundation-names <list> <page> <sources> <toolchain's graphs> <our graphs> <toolchain> [option]")
  exit(2)
}
do {
  try run(arguments, option: option)
} catch {
  let lines = (error as? Failure)?.lines ?? ["\(error)"]
  FileHandle.standardError.write(Data((lines.joined(separator: "\n") + "\n").utf8))
  exit(1)
}
