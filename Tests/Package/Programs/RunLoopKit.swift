// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit

/// Foundation's names for our types, and our main loop, which is served without a call while Foundation's runs.
@main enum Program {
  static func main() throws {
    let timer = Timer(fire: Date(timeIntervalSinceNow: 0.001), interval: 0, repeats: false) { _ in
      DispatchQueue.main.async { RunLoop.main.stop() }
    }
    RunLoop.main.add(timer, forMode: .common)
    let result = RunLoop.main.run(mode: .default, for: .seconds(60))
    guard result == .stopped else { exit(1) }

    // The child ends when our loop closes its input, which happens only while Foundation waits for the child.
    let child = Process()
    let input = Pipe()
    child.executableURL = URL(fileURLWithPath: "/bin/cat")
    child.standardInput = input
    try child.run()
    RunLoop.main.perform { input.fileHandleForWriting.closeFile() }
    child.waitUntilExit()
    print("RunLoopKit: \(result), and a child that has ended with \(child.terminationStatus)")
    exit(child.terminationStatus)
  }
}
