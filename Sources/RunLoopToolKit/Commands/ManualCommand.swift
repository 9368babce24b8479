// SPDX-License-Identifier: Apache-2.0

/// `runloop manual`: prints the manual page or shell completions, generated from the commands.
struct ManualCommand: ObservingCommand {
  static let name = "manual"
  static let usage = """
    usage: runloop manual [--bash | --zsh | --fish]

    Prints the tool's page of the manual, or with an option what a shell needs to complete its commands and
    options:

      runloop manual > runloop.1
      runloop manual --bash > ~/.local/share/bash-completion/completions/runloop
      runloop manual --zsh > a directory of $fpath/_runloop
      runloop manual --fish > ~/.config/fish/completions/runloop.fish

    Exit status: 0, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(flags: ["--bash", "--zsh", "--fish"])

  private let shell: String?

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    let shells = ManualCommand.options.flags.filter { arguments.flags.contains($0) }
    guard shells.count <= 1, arguments.words.isEmpty, arguments.rest == nil else {
      throw .init(messages: ["name one shell, or none"])
    }
    shell = shells.first
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    let commands = ObservingCommands.all
    let text =
      switch shell {
      case "--bash": Completions.bash(commands)
      case "--zsh": Completions.zsh(commands)
      case "--fish": Completions.fish(commands)
      default: ManualPage.text(commands)
      }
    // Printed line by line, because the output escapes each line separately.
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) { output.print(String(line)) }
    return CommandStatus.success.rawValue
  }
}

/// The manual page.
enum ManualPage {
  static func text(_ commands: [Subcommand]) -> String {
    var lines = [
      ".TH RUNLOOP 1", ".SH NAME", "runloop \\- shows what the run loops of processes do, and where they hang",
      ".SH SYNOPSIS", ".B runloop", ".I command", "[arguments]", ".SH COMMANDS",
    ]
    for command in commands {
      lines += [".SS \(command.name)", escaped(command.abstract) + ".", ".PP", ".nf"]
      lines += help(command).split(separator: "\n", omittingEmptySubsequences: false).map { escaped(String($0)) }
      lines.append(".fi")
    }
    return lines.joined(separator: "\n")
  }

  private static func help(_ command: Subcommand) -> String {
    let text = CollectedText()
    _ = command.run(["--help"], Output(print: { text.add($0) }, complain: { _ in }))
    return text.lines.joined(separator: "\n")
  }

  /// Escapes a line so that the formatter does not interpret it.
  private static func escaped(_ line: String) -> String {
    let text = line.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\e")
    let safe = text.split(separator: "-", omittingEmptySubsequences: false).joined(separator: "\\-")
    return safe.hasPrefix(".") || safe.hasPrefix("'") ? "\\&" + safe : safe
  }

  private final class CollectedText: @unchecked Sendable {
    // Sendable: used only on the thread that runs the command, until the command returns.
    private(set) var lines: [String] = []
    func add(_ line: String) { lines.append(line) }
  }
}

/// Shell completions for the commands, their options, and files.
enum Completions {
  private static func options(of command: Subcommand) -> [String] {
    command.options.values + command.options.flags + ["--json", "--help", Arguments.symbols]
  }

  static func bash(_ commands: [Subcommand]) -> String {
    let cases = commands.map { "    \($0.name)) words='\(options(of: $0).joined(separator: " "))' ;;" }
    return """
      _runloop() {
        local words='\(commands.map(\.name).joined(separator: " ")) help --help --version'
        if [ "$COMP_CWORD" -gt 1 ]; then
          case "${COMP_WORDS[1]}" in
      \(cases.joined(separator: "\n"))
          *) words= ;;
          esac
        fi
        COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
      }
      complete -o default -F _runloop runloop
      """
  }

  static func zsh(_ commands: [Subcommand]) -> String {
    let names = commands.map { "'\($0.name):\($0.abstract)'" }
    let cases = commands.map { "    \($0.name)) compadd -- \(options(of: $0).joined(separator: " ")); _files ;;" }
    return """
      #compdef runloop
      _runloop() {
        local -a commands=(\(names.joined(separator: " ")))
        if (( CURRENT == 2 )); then
          _describe command commands
          return
        fi
        case "$words[2]" in
      \(cases.joined(separator: "\n"))
        esac
      }
      _runloop "$@"
      """
  }

  static func fish(_ commands: [Subcommand]) -> String {
    var lines = commands.map {
      "complete -c runloop -n __fish_use_subcommand -f -a \($0.name) -d '\($0.abstract)'"
    }
    for command in commands {
      let condition = "-n '__fish_seen_subcommand_from \(command.name)'"
      for option in command.options.values {
        lines.append("complete -c runloop \(condition) -r -l \(option.dropFirst(2))")
      }
      for option in command.options.flags + ["--json", "--help"] {
        lines.append("complete -c runloop \(condition) -l \(option.dropFirst(2))")
      }
    }
    return lines.joined(separator: "\n")
  }
}
