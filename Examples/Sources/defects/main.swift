// SPDX-License-Identifier: Apache-2.0

// Runs each program with Foundation alone and together with RunLoopKit, in its own process, and prints the
// observations. Fails if one with RunLoopKit shows a defect. A defect that Foundation no longer has is only reported.
//
//   defects                        the table
//   defects alone|beside NUMBER    one program: its observation, and status 1 for a defect

import DefectsAlone
import DefectsBeside
import Foundation

/// The outcome of a program in its own process.
struct Outcome {
  var seen: String
  var isRight: Bool
}

func run(_ company: String, _ number: Int) throws -> Outcome {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
  process.arguments = [company, String(number)]
  process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
  let output = Pipe()
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  let ended = DispatchSemaphore(value: 0)
  process.terminationHandler = { _ in ended.signal() }
  try process.run()
  guard ended.wait(timeout: .now() + 20) == .success else {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    return Outcome(seen: "hangs", isRight: false)
  }
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  if process.terminationReason == .uncaughtSignal {
    return Outcome(seen: "crashes: \(String(cString: strsignal(process.terminationStatus)))", isRight: false)
  }
  // Status 2 is an error of this program itself.
  guard let line = text.split(separator: "\n").last else {
    return Outcome(seen: "says nothing, status \(process.terminationStatus)", isRight: false)
  }
  return Outcome(seen: String(line), isRight: process.terminationStatus == 0)
}

func table() throws -> Bool {
  var rows = [("", "Foundation", "with RunLoopKit")]
  var remarks: [String] = []
  var isRight = true
  for number in DefectsAlone.programs.indices {
    let title = DefectsAlone.programs[number].title
    let (alone, beside) = (try run("alone", number), try run("beside", number))
    rows.append((title, alone.seen, beside.seen))
    if alone.isRight { remarks.append("Foundation does not show this defect any more: \(title)") }
    if !beside.isRight {
      remarks.append("WRONG with RunLoopKit: \(title)")
      isRight = false
    }
  }
  let (first, second) = (rows.map(\.0.count).max() ?? 0, rows.map(\.1.count).max() ?? 0)
  func padded(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: width - text.count) }
  for row in rows { print(padded(row.0, first) + "  " + padded(row.1, second) + "  " + row.2) }
  for remark in remarks { print(remark) }
  return isRight
}

let arguments = CommandLine.arguments.dropFirst().map { $0 }
let programs = ["alone": DefectsAlone.programs, "beside": DefectsBeside.programs]
do {
  if arguments.isEmpty { exit(try table() ? 0 : 1) }
  guard arguments.count == 2, let programs = programs[arguments[0]], let number = Int(arguments[1]),
    programs.indices.contains(number)
  else {
    print("usage: defects [alone|beside NUMBER]")
    exit(2)
  }
  let (seen, isRight) = programs[number].run()
  print(seen)
  exit(isRight ? 0 : 1)
} catch {
  print("\(error)")
  exit(2)
}
