// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

/// The command-line tool `conformance`.
package struct ConformanceCommand {
  package static let usage = """
    usage: conformance [--seed N] [--programs N] [--jobs N]
           conformance --seed N --program N
           conformance --file PATH
           conformance --page PATH [--check]
           conformance --rules PATH [--check]

    Runs random programs on Core Foundation's run loop, on this project's, and on a model of both, and compares the logs.
    The last line is "equal N, named difference N, different N"; the status is 1 if any program is different.

      --seed N       the series of programs; a random one if it is not given
      --programs N   how many programs of the series; 2000 if it is not given
      --jobs N       how many programs at once; as many as there are processors if it is not given
      --program N    shows one program of the series and its logs
      --file PATH    reads a program, spelt as --program shows it, and shows its logs
      --page PATH    writes the documentation's page of logs: runs the programs of every rule on both loops
      --rules PATH   writes the pages of rules and differences and the names of the rules in the project at a path, from the
                     list of rules and the tests there; the status is 1 if nothing shows a rule
      --check        compares what is there and writes nothing; the status is 1 if it is not current
    """

  let print: (String) -> Void
  private let complain: (String) -> Void

  package init() {
    self.init(
      print: { text in Swift.print(text) },
      complain: { text in
        let line = text + "\n"
        line.withCString { _ = write(STDERR_FILENO, $0, strlen($0)) }
      })
  }

  init(print: @escaping (String) -> Void, complain: @escaping (String) -> Void) {
    self.print = print
    self.complain = complain
  }

  /// Runs the tool.
  ///
  /// - Parameter arguments: The arguments after the tool's name.
  /// - Returns: The exit status: 0 for success, 1 if a program is different, 2 for invalid arguments.
  package func run(_ arguments: [String]) -> Int32 {
    do {
      let arguments = try ConformanceArguments(arguments)
      let comparison = Comparison()
      let seed = arguments.seed ?? UInt64.random(in: 0..<1_000_000_000)
      let series = Series(
        seed: seed, numbers: 0..<arguments.programs, jobs: arguments.jobs ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))),
        comparison: comparison)
      switch arguments.task {
      case .help:
        print(Self.usage)
        return 0
      case .series: return run(series, comparison)
      case .show(let number): return show(series.program(number), "program \(number) of seed \(seed)", comparison)
      case .read(let path):
        return show(try program(in: try contents(of: path), path), "program of \(path)", comparison)
      case .page(let path, let check): return try document(LogPage().text(), to: path, check, by: "conformance")
      case .rules(let path, let check): return try rules(path, check)
      }
    } catch {
      complain("conformance: \(error.message)")
      complain(Self.usage)
      return 2
    }
  }

  private func program(in text: String, _ path: String) throws(ConformanceArguments.Failure) -> Program {
    do throws(LiteralError) {
      let program = try Program(source: text)
      guard let fault = program.faults.first else { return program }
      throw LiteralError(fault)
    } catch {
      throw .init(message: "\(path): \(error)")
    }
  }

  /// Writes the documents generated from the list of rules, or checks whether they are current.
  private func rules(_ project: String, _ check: Bool) throws(ConformanceArguments.Failure) -> Int32 {
    let documents = try RuleDocuments(project: project)
    // Written even after an error, because a new rule needs its name before a test can refer to it.
    var status: Int32 = 0
    for (path, text) in documents.documents where try document(text, to: "\(project)/\(path)", check, by: "rules") != 0
    {
      status = 1
    }
    for mistake in documents.mistakes { complain(mistake) }
    print(documents.summary)
    return documents.mistakes.isEmpty ? status : 1
  }

  /// Writes a page, or checks whether it is current.
  private func document(
    _ text: String, to path: String, _ check: Bool, by script: String
  ) throws(ConformanceArguments.Failure) -> Int32 {
    if check {
      guard try contents(of: path) == text else {
        print("\(path) is not current: run Documentation/\(script)")
        return 1
      }
      print("\(path) is current")
    } else {
      guard let file = fopen(path, "w") else { throw .init(message: "\(path) cannot be written") }
      let isWritten = fputs(text, file) >= 0
      guard fclose(file) == 0, isWritten else { throw .init(message: "\(path) cannot be written") }
      print("\(path) is written")
    }
    return 0
  }

  private func contents(of path: String) throws(ConformanceArguments.Failure) -> String {
    guard let file = fopen(path, "r") else { throw .init(message: "\(path) cannot be read") }
    defer { fclose(file) }
    var text = ""
    while let line = nextLine(of: file) { text += line }
    return text
  }

  private func nextLine(of file: UnsafeMutablePointer<FILE>) -> String? {
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    guard getline(&line, &capacity, file) > 0, let line else { return nil }
    return String(cString: line)
  }
}
