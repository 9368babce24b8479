// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopDisplay

/// Shows views and the run loop's work for them; F1 shows more elaborate ones.
///
///     ui-catalog [--still] [--log FILE]
///
/// `--still`: without timers, so that nothing changes by itself. `--log FILE`: writes the events to a file at the
/// end.
@main
struct Program {
  @MainActor
  static func main() {
    guard let options = Options(CommandLine.arguments.dropFirst()) else {
      fail("usage: ui-catalog [--still] [--log FILE]", status: 2)
    }
    var log: EventLog?
    if let path = options.logFile {
      log = EventLog(path: path)
      if log == nil { fail(path, errno) }
    }
    do {
      try Catalog(device: Terminal(), isStill: options.isStill, trace: log).run()
    } catch {
      fail("ui-catalog: \(error)", status: 1)
    }
    if let log, let path = options.logFile, !log.close() { fail(path, errno) }
  }

  private static func fail(_ path: String, _ error: Int32) -> Never {
    fail("ui-catalog: \(path) cannot be written: \(String(cString: strerror(error)))", status: 1)
  }

  private static func fail(_ message: String, status: Int32) -> Never {
    var line = message + "\n"
    line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    exit(status)
  }
}

/// The options of the command line.
struct Options {
  var isStill = false
  var logFile: String?

  init?(_ arguments: some Sequence<String>) {
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--still": isStill = true
      case "--log":
        guard let file = rest.next() else { return nil }
        logFile = file
      default: return nil
      }
    }
  }
}
