// SPDX-License-Identifier: Apache-2.0

import CRunLoopToolKit
import RunLoopLibC

/// The capabilities that this machine lacks for observing processes, and the consequences, one sentence each.
enum MachineReport {
  static var lines: [String] {
    [symbolizer, yama, samples, memory, processorClock].compactMap { $0 }
  }

  private static var symbolizer: String? {
    ExternalSymbolizer().isThere
      ? nil : "llvm-symbolizer is not in the path: code is shown by files and offsets, and has no names and lines"
  }

  private static var yama: String? {
    guard let scope = readWhole("/proc/sys/kernel/yama/ptrace_scope")?.first.flatMap({ $0.wholeNumberValue }), scope > 0
    else { return nil }
    guard geteuid() != 0 || scope == 3 else { return nil }
    return "/proc/sys/kernel/yama/ptrace_scope is \(scope): "
      + "processes without an agent that are no children show no stacks"
  }

  private static var samples: String? {
    guard let text = readWhole("/proc/sys/kernel/perf_event_paranoid"),
      let level = Int(text.prefix { $0 != "\n" })
    else { return "the kernel has no perf events: a thread that computes shows no stack" }
    guard level > 2, geteuid() != 0 else { return nil }
    return "/proc/sys/kernel/perf_event_paranoid is \(level): a thread that computes shows no stack"
  }

  private static var memory: String? {
    var word: UInt64 = 1
    var copy: UInt64 = 0
    let answer = withUnsafeMutablePointer(to: &word) { place in
      crlt_read(getpid(), UInt64(UInt(bitPattern: place)), &copy, 8)
    }
    guard answer < 0 else { return nil }
    let reason = String(cString: strerror(Int32(-answer)))
    return "process_vm_readv is rejected (\(reason)): memory is read by /proc, as far as that is permitted"
  }

  private static var processorClock: String? {
    #if arch(x86_64)
      let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
      guard let name = readWhole(path)?.prefix(while: { $0 != "\n" }), name != "tsc" else { return nil }
      return "the kernel's clock is \(name) and not tsc: a recorded call-out costs a call of the system's clock twice"
    #else
      return nil
    #endif
  }
}
