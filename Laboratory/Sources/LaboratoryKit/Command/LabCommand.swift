// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The `laboratory` program, which runs the experiments and reports the results.
package struct LabCommand: Sendable {
  let output: Output

  /// Creates the command, whose output defaults to standard output and standard error.
  package init(output: Output = .standard) { self.output = output }

  static let usage = """
    usage: laboratory [--list] [--verbose | --json] [experiment or group ...]

    Runs experiments that put the claims of five articles to the test on real run loops and
    threads, many on virtual time: all of them, or the ones named, as in "laboratory B7 D9", or
    whole groups, as in "laboratory E", which also prints the main loop of an application beside
    one that an article prints.

      --list      names the experiments and runs none
      --verbose   prints what each experiment says while it runs
      --json      prints one array of objects: id, title, claim, observed, verdict, correction,
                  evidence, differences, difference, documents, articles, holds, seconds
                  (with --verbose, the logs go to the standard error)
      --help      prints this

    The verdict is about Apple's loop: confirmed, corrected or refuted, with its evidence. What is
    otherwise here stands apart from it, with the number of the difference. An experiment holds if
    the loop did exactly what it requires. Exit status: 0 if every experiment that ran holds, 1 if
    one does not, 2 for arguments that make no sense.
    """

  /// Runs the program with its arguments.
  package func run(_ arguments: [String]) -> CommandStatus {
    let request: LabArguments
    do {
      request = try LabArguments(arguments, known: Catalog.ids)
    } catch {
      for message in error.messages { output.complain("laboratory: \(message)") }
      output.complain("\"laboratory --list\" names the experiments, \"laboratory --help\" the options.")
      return .usageError
    }
    if request.wantsHelp {
      output.print(Self.usage)
      return .success
    }
    let experiments = request.ids.isEmpty ? Catalog.all : request.ids.compactMap(Catalog.experiment)
    if request.lists {
      for experiment in experiments { output.print(listing(experiment)) }
      return .success
    }
    return run(experiments, request)
  }

  private func run(_ experiments: [any Experiment], _ request: LabArguments) -> CommandStatus {
    var reports: [Report] = []
    for experiment in experiments {
      let report = Report(of: experiment, on: Bench())
      reports.append(report)
      if !request.isJSON {
        output.print(report.text(verbose: request.isVerbose) + "\n")
      } else if request.isVerbose {
        for line in report.log { output.complain("\(experiment.id)  \(line)") }
      }
    }
    output.print(request.isJSON ? json(of: reports) : summary(of: reports))
    var holds = reports.allSatisfy(\.outcome.holds)
    if request.groups.contains("E"), !request.isJSON, Bench.isOnMainThread {
      let loop = WholeLoop(on: Bench())
      output.print("\n" + loop.text)
      holds = holds && loop.holds
    }
    return holds ? .success : .failure
  }

  private func listing(_ experiment: any Experiment) -> String {
    let id = experiment.id + String(repeating: " ", count: max(1, 5 - experiment.id.count))
    return "\(id)\(experiment.title) (\(authors(of: experiment.articles)))"
  }
}
