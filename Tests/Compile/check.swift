// SPDX-License-Identifier: Apache-2.0

// Compiles the sections of some files with Foundation alone and together with RunLoopKit, in the Swift 5 and Swift 6
// language modes, and compares the diagnostics with a list in both directions.
//
//   check <folder of the files> <list of diagnostics> <folders of our modules, with colons> <list of names> <work>
//   <guide> [--update]
//
// A section begins at a line "// MARK: title". The text before the first section is compiled with each of them. A
// section with expected diagnostics is compiled by itself, because one error hides others; the rest of all files is
// compiled at once. A section that compiles without diagnostics alone, but not with RunLoopKit, has a line "//
// Porting: text", and the guide must contain that text. Finally the list of names is checked: alone, the files must
// mention every name of Foundation; with RunLoopKit, names that it declares must refer to its declarations.
//
// `--update` writes the observed list.

import Foundation

/// The problems that the check found.
struct Failure: Error {
  var lines: [String]
}

// MARK: Sections

/// The modules that are imported: Foundation alone, or RunLoopKit beside it.
enum Company: String, CaseIterable {
  case alone, beside
}

struct Setting: Hashable {
  var company: Company
  var mode: String

  static let all = Company.allCases.flatMap { company in ["5", "6"].map { Setting(company: company, mode: $0) } }
}

struct Section: Hashable {
  var file: String
  var title: String
}

/// A file that consists of sections.
struct Source {
  var path: String
  var lines: [Substring]
  /// The section of each line, or nil in the preamble.
  var owners: [Section?] = []

  init(_ path: String) throws {
    self.path = path
    let text = try String(contentsOfFile: path, encoding: .utf8)
    lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    var section: Section?
    for line in lines {
      if line.hasPrefix("// MARK: ") { section = Section(file: path, title: String(line.dropFirst(9))) }
      owners.append(section)
    }
  }

  var sections: Set<Section> { Set(owners.compactMap { $0 }) }

  /// The guide's text for each section that needs a change with RunLoopKit.
  var guidance: [String: String] {
    let texts = zip(lines, owners).compactMap { line, owner in
      owner.flatMap { line.hasPrefix("// Porting: ") ? ($0.title, String(line.dropFirst(12))) : nil }
    }
    return Dictionary(texts) { first, _ in first }
  }

  /// Returns the text of some sections, with blank lines for the others so that line numbers stay the same.
  func text(of sections: Set<Section>) -> String {
    let kept = zip(lines, owners).map { line, owner in owner.map(sections.contains) ?? true ? line : "" }
    return "#sourceLocation(file: \"\(path)\", line: 1)\n" + kept.joined(separator: "\n")
  }
}

// MARK: Diagnostics

struct Diagnostic: Hashable, Comparable {
  var line: Int
  var text: String
  static func < (left: Diagnostic, right: Diagnostic) -> Bool { (left.line, left.text) < (right.line, right.text) }
}

struct Compiler {
  /// The directories of our modules and their headers.
  var imports: [String]
  var work: String

  func arguments(_ setting: Setting) -> [String] {
    let imports = setting.company == .beside ? imports.flatMap { ["-I", $0] } : []
    return ["-swift-version", setting.mode, "-parse-as-library", "-module-name", "Names"] + imports
  }

  /// Runs the compiler, and returns its standard output and standard error.
  private func run(_ arguments: [String]) throws -> (output: String, errors: String, status: Int32) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["swiftc", "-diagnostic-style", "llvm", "-no-color-diagnostics"] + arguments
    let (output, errors) = (work + "/output", work + "/errors")
    for path in [output, errors] { try Data().write(to: URL(fileURLWithPath: path)) }
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    try process.run()
    process.waitUntilExit()
    return (
      try String(contentsOfFile: output, encoding: .utf8), try String(contentsOfFile: errors, encoding: .utf8),
      process.terminationStatus
    )
  }

  /// Writes the sections to files for the compiler.
  private func write(_ sources: [Source], _ sections: Set<Section>) throws -> [String] {
    try sources.filter { !$0.sections.isDisjoint(with: sections) }.enumerated().map { number, source in
      let path = "\(work)/Section\(number).swift"
      try source.text(of: sections).write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }
  }

  /// Returns the errors and warnings of sections that are compiled together.
  func diagnostics(
    _ sources: [Source], _ sections: Set<Section>, _ setting: Setting
  ) throws -> [Section: [Diagnostic]] {
    let files = try write(sources, sections)
    // Isolation is checked after types. Only a later stage performs both.
    let (_, errors, status) = try run(["-wmo", "-emit-sil", "-o", "/dev/null"] + arguments(setting) + files)
    let owners = Dictionary(uniqueKeysWithValues: sources.map { ($0.path, $0.owners) })
    var found: [Section: Set<Diagnostic>] = [:]
    var homeless: [String] = []
    for line in errors.split(separator: "\n") {
      guard let match = line.wholeMatch(of: /(.*?):(\d+):\d+: ((?:error|warning): .*?)(?: \[#[\w-]+\])?/) else {
        if line.contains("error:") { homeless.append(String(line)) }
        continue
      }
      let (path, number, text) = (String(match.output.1), Int(match.output.2) ?? 0, String(match.output.3))
      guard let lines = owners[path], lines.indices.contains(number - 1), let section = lines[number - 1] else {
        homeless.append(String(line))
        continue
      }
      found[section, default: []].insert(Diagnostic(line: number, text: text))
    }
    guard homeless.isEmpty, status == 0 || !found.isEmpty else {
      throw Failure(lines: ["not of a section, \(setting):"] + (homeless.isEmpty ? [errors] : homeless))
    }
    return found.mapValues { $0.sorted() }
  }

  /// Returns the symbols that sections without errors mention, each with the paths of the files that mention it.
  func mentions(_ sources: [Source], _ sections: Set<Section>, _ setting: Setting) throws -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    for source in sources where !source.sections.isDisjoint(with: sections) {
      let files = try write([source], sections)
      let (output, errors, status) = try run(
        ["-dump-ast", "-dump-ast-format", "json"] + arguments(setting) + files)
      guard status == 0 else { throw Failure(lines: ["the tree cannot be had, \(setting):", errors]) }
      for match in output.matches(of: /"(?:decl_usr|usr)":"([^"]+)"/) {
        found[String(match.output.1), default: []].insert(source.path)
      }
      // A type that is mentioned by itself appears only as part of another type's name.
      for match in output.matches(of: /"(?:type|interface_type)":"\$s([^"]+)"/) {
        found["type " + match.output.1, default: []].insert(source.path)
      }
    }
    guard !found.isEmpty else { throw Failure(lines: ["the compiler's tree mentions nothing, \(setting)"]) }
    return found
  }
}

// MARK: The list of diagnostics

/// A section in one setting, with its expected diagnostics.
struct Listing: Hashable {
  var setting: Setting
  var title: String
}

struct DiagnosticList {
  var preamble: [String] = []
  var texts: [Listing: [String]] = [:]

  init(_ path: String) throws {
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      if line.hasPrefix("//") {
        preamble.append(String(line))
        continue
      }
      let columns = line.split(separator: " | ", maxSplits: 3).map(String.init)
      guard columns.count == 4, let company = Company(rawValue: columns[0]) else {
        throw Failure(lines: ["\(path): not a line of the list: \(line)"])
      }
      for mode in columns[1].split(separator: " ") {
        let setting = Setting(company: company, mode: String(mode))
        texts[Listing(setting: setting, title: columns[2]), default: []].append(columns[3])
      }
    }
  }

  /// The text of the list, with one line for diagnostics that both language modes share.
  var text: String {
    var text = preamble.joined(separator: "\n") + "\n"
    for company in Company.allCases {
      text += "\n"
      let titles = Set(texts.keys.filter { $0.setting.company == company }.map(\.title)).sorted()
      for title in titles {
        let (five, six) = (of(company, "5", title), of(company, "6", title))
        for (modes, lines) in five == six ? [("5 6", five)] : [("5", five), ("6", six)] {
          for line in lines { text += "\(company.rawValue) | \(modes) | \(title) | \(line)\n" }
        }
      }
    }
    return text
  }

  private func of(_ company: Company, _ mode: String, _ title: String) -> [String] {
    texts[Listing(setting: Setting(company: company, mode: mode), title: title)] ?? []
  }
}

// MARK: The names

/// A line of `Documentation/foundation-names --symbols`.
struct Name {
  var fate: String
  var kind: String
  var identifier: String
  var path: String
  var declaration: String
  /// The compiler's names for our declarations of the same path.
  var ours: [String]

  init?(_ line: Substring) {
    let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard columns.count == 7 else { return nil }
    (fate, kind, identifier) = (columns[0], columns[2], columns[3])
    (path, declaration) = (columns[4], columns[5])
    ours = columns[6].split(separator: " ").map(String.init)
    // Most C functions are unrelated to our types, and kinships have no name.
    guard columns[1] != "CoreFoundation" || fate == "overload", kind != "kinship" else { return nil }
  }

  var isType: Bool { ["swift.class", "swift.struct", "swift.enum", "swift.protocol"].contains(kind) }

  func isIn(_ mentions: [String: Set<String>]) -> Bool {
    guard isType else { return mentions[identifier] != nil }
    // A protocol's mangled name ends in another letter when it is the type of a value.
    let name = identifier.dropFirst(2).dropLast(kind == "swift.protocol" ? 1 : 0)
    return mentions.keys.contains { $0.hasPrefix("type ") && $0.contains(name) }
  }
}

/// Returns the names that the files fail to mention, or that refer to the wrong declaration.
func objections(
  names: [Name], alone: [String: Set<String>], beside: [String: Set<String>], explicit: String
) -> [String] {
  names.flatMap { name -> [String] in
    let text = "\(name.path), \(name.declaration)"
    var wrong: [String] = []
    if !name.isIn(alone) { wrong.append("no section that compiles alone uses \(text)") }
    if name.fate == "ours" || name.fate == "overload", !name.isType, !name.ours.contains(where: { beside[$0] != nil }) {
      wrong.append("no section that compiles beside uses ours: \(text)")
    }
    if name.fate == "ours", let files = beside[name.identifier]?.filter({ $0 != explicit }), !files.isEmpty {
      wrong.append("beside ours, Foundation's is meant in \(files.sorted()): \(text)")
    }
    if name.fate == "overload" || name.fate == "unchanged", !name.isIn(beside) {
      wrong.append("no section that compiles beside uses Foundation's own: \(text)")
    }
    return wrong
  }
}

// MARK: The guide

/// Returns the sections that need a change with RunLoopKit and are missing from the guide.
func objections(to observed: [Listing: [String]], titles: some Sequence<String>, sources: [Source], guide: String)
  -> [String]
{
  let guidance = sources.reduce(into: [:]) { $0.merge($1.guidance) { first, _ in first } }
  func isSilent(_ title: String, _ company: Company, _ mode: String) -> Bool {
    observed[Listing(setting: Setting(company: company, mode: mode), title: title)] == nil
  }
  return titles.sorted().compactMap { title in
    let differs = ["5", "6"].contains { isSilent(title, .alone, $0) && !isSilent(title, .beside, $0) }
    switch guidance[title] {
    case nil where differs: return "it compiles alone and not beside, and names no part of the guide: \(title)"
    case let text? where !guide.contains(text): return "the guide does not contain \(text): \(title)"
    default: return nil
    }
  }
}

// MARK: The program

func check(_ arguments: [String], isUpdate: Bool) throws {
  let (folder, listPath) = (arguments[0], arguments[1])
  let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }.sorted()
  let sources = try files.map { try Source(folder + "/" + $0) }
  let sections = sources.reduce(into: Set<Section>()) { $0.formUnion($1.sections) }
  let titles = Dictionary(grouping: sections, by: \.title)
  var list = try DiagnosticList(listPath)
  var wrong = titles.filter { $0.value.count > 1 }.keys.map { "two sections have one title: \($0)" }
  wrong += Set(list.texts.keys.map(\.title)).subtracting(titles.keys).map { "listed, and no section: \($0)" }
  guard wrong.isEmpty, !sections.isEmpty else { throw Failure(lines: wrong) }
  let compiler = Compiler(imports: arguments[2].split(separator: ":").map(String.init), work: arguments[4])

  var observed: [Listing: [String]] = [:]
  var clean: [Setting: Set<Section>] = [:]
  for setting in Setting.all {
    var apart = sections.filter { isUpdate || list.texts[Listing(setting: setting, title: $0.title)] != nil }
    let together = sections.subtracting(apart)
    if !together.isEmpty {
      for (section, found) in try compiler.diagnostics(sources, together, setting) {
        for diagnostic in found {
          wrong.append("\(section.file):\(diagnostic.line): \(setting.company) \(setting.mode): \(diagnostic.text)")
        }
        apart.insert(section)
      }
    }
    for section in apart.sorted(by: { $0.title < $1.title }) {
      let found = try compiler.diagnostics(sources, [section], setting)[section] ?? []
      if !found.isEmpty { observed[Listing(setting: setting, title: section.title)] = found.map(\.text) }
    }
    clean[setting] = sections.filter { section in
      let texts = observed[Listing(setting: setting, title: section.title)] ?? []
      return !texts.contains { $0.hasPrefix("error") }
    }
  }
  if isUpdate {
    list.texts = observed
    try list.text.write(toFile: listPath, atomically: true, encoding: .utf8)
  } else {
    for (listing, texts) in list.texts where observed[listing] != texts {
      let (setting, found) = (listing.setting, observed[listing] ?? [])
      wrong.append("\(listing.title), \(setting.company) \(setting.mode): listed is")
      wrong += texts.map { "  " + $0 }
      wrong += [found.isEmpty ? "and it compiles" : "and observed is"] + found.map { "  " + $0 }
    }
  }

  let guide = try String(contentsOfFile: arguments[5], encoding: .utf8)
  wrong += objections(to: observed, titles: titles.keys, sources: sources, guide: guide)
  let names = try String(contentsOfFile: arguments[3], encoding: .utf8).split(separator: "\n").compactMap(Name.init)
  guard !names.isEmpty else { throw Failure(lines: ["\(arguments[3]): no names"]) }
  var mentions: [Company: [String: Set<String>]] = [:]
  for setting in Setting.all {
    let found = try compiler.mentions(sources, clean[setting] ?? [], setting)
    mentions[setting.company, default: [:]].merge(found) { $0.union($1) }
  }
  wrong += objections(
    names: names, alone: mentions[.alone] ?? [:], beside: mentions[.beside] ?? [:],
    explicit: folder + "/Explicit.swift")
  guard wrong.isEmpty else { throw Failure(lines: wrong) }
  let differing = Set(list.texts.keys.filter { $0.setting.company == .alone }.map(\.title)).count
  let lost = Set(list.texts.keys.filter { $0.setting.company == .beside }.map(\.title)).count
  print(
    "\(sections.count) sections use \(names.count) names of Foundation; "
      + "the compiler objects to \(differing) with Foundation alone, to \(lost) beside RunLoopKit, as listed")
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count == 6 || (arguments.count == 7 && arguments[6] == "--update") else {
  print("usage: check <files> <diagnostics> <folders> <names> <work> <guide> [--update]")
  exit(2)
}
do {
  try check(arguments, isUpdate: arguments.count == 7)
} catch {
  let lines = (error as? Failure)?.lines ?? ["\(error)"]
  FileHandle.standardError.write(Data((lines.joined(separator: "\n") + "\n").utf8))
  exit(1)
}
