// SPDX-License-Identifier: Apache-2.0

// Takes the terminal that it runs in, shows a frame, and ends in one of many ways: `terminal-ends HOW`. Notes for a
// test are written to descriptor 3. `terminal-ends shell HOW` runs the same in its own process group, as a shell
// does. With INLINE=3 in the environment the program uses three rows below the screen's content.

import Glibc
import RunLoopCore
import RunLoopDisplay
import RunLoopTransactions
import Synchronization

func note(_ text: String) { write(text, to: 3) }

func write(_ text: String, to descriptor: Int32) {
  let line = Array((text + "\n").utf8)
  _ = line.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
}

@MainActor
final class Client: DisplayDeviceClient {
  let how: String
  var frames = 0
  private var chunks = 0
  private var commands: [String] = []

  init(how: String) { self.how = how }

  func show(_ device: any DisplayDevice) {
    guard device.isReadyForFrame else { return }
    repeat {
      frames += 1
      present(to: device)
      if frames <= 3 { note("shown \(frames)") }
      // A device that has always been ready sends no notification, as the window reads fast.
    } while how == "flood" && frames < 3 && device.isReadyForFrame
  }

  private func present(to device: any DisplayDevice) {
    var canvas = Canvas(size: device.size)
    if how == "flood" {
      let letters: [Character] = ["a", "b", "c", "d"]
      for y in 0..<device.size.height {
        for x in 0..<device.size.width { canvas.fill(Rect(x: x, y: y, width: 1, height: 1), letters[(x + frames) % 4]) }
      }
    }
    canvas.draw("frame \(how)", at: .zero)
    device.present(canvas.grid, scrolls: [])
  }

  func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent]) {
    for event in events {
      note("\(event), ready: \(device.isReadyForFrame)")
      switch event {
      case .key(KeyEvent(.character("q"))): end("return")
      case .key(KeyEvent(.character("e"))): end(how)
      case .key(KeyEvent(.character("z"), modifiers: .control)): device.suspend()
      case .hangUp: RunLoop.main.stop()
      case .resize: show(device)
      default: break
      }
    }
  }

  /// Writes 80 MiB to standard error from a timer, without a frame.
  ///
  /// Notes the memory (KiB) that the file receiving it uses, and its size (MiB).
  func logWithoutFrames() {
    _ = RunLoop.main.schedule(
      in: .milliseconds(1), repeating: .milliseconds(1), mode: .common,
      block: MainActor.handler { [weak self] (timer: Timer) in self?.logChunk(timer) })
  }

  private func logChunk(_ timer: Timer) {
    guard chunks < 160 else {
      timer.invalidate()
      var status = stat()
      fstat(STDERR_FILENO, &status)
      return note("held \(status.st_blocks / 2) \(status.st_size >> 20)")
    }
    write("chunk \(chunks) " + String(repeating: "x", count: 1 << 19), to: STDERR_FILENO)
    chunks += 1
  }

  /// Writes a line, and makes a child write in each of the next passes.
  func runChildren() {
    write("written before", to: STDERR_FILENO)
    commands = [
      "echo created > /dev/stderr", "echo renewed > /dev/stderr", "echo appended >> /dev/stderr",
      "echo copied | tee /dev/stderr > /dev/null", "echo created as output > /dev/stdout", "echo inherited >&2",
    ]
    _ = RunLoop.main.schedule(
      in: .milliseconds(1), repeating: .milliseconds(1), mode: .common,
      block: MainActor.handler { [weak self] (timer: Timer) in self?.runChild(timer) })
  }

  private func runChild(_ timer: Timer) {
    guard !commands.isEmpty else {
      timer.invalidate()
      return note("children")
    }
    note("child \(system(commands.removeFirst()))")
  }

  func deviceIsReadyForFrame(_ device: any DisplayDevice) { show(device) }
  func deviceWillSuspend(_ device: any DisplayDevice) { note("suspend") }
  func deviceDidResume(_ device: any DisplayDevice) { note("resume") }
}

@inline(never)
func overflow(_ depth: Int) -> Int {
  withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 16) { bytes in
    bytes[depth % 4096] = 1
    return overflow(depth + 1) + Int(bytes[(depth * 7) % 4096])
  }
}

@MainActor
func end(_ how: String) {
  switch how {
  case "return": RunLoop.main.stop()
  case "exit": exit(7)
  case "trap": preconditionFailure("the trap that the test wants")
  case "segv": UnsafeMutablePointer<Int>(bitPattern: 8)?.pointee = 1
  case "overflow": note("\(overflow(0))")
  case "overflow of a worker":
    let transaction = AsyncTransaction(group: .main)
    transaction.add { _ in
      overflow(0)
    } completion: {
      note("\($0)")
    }
    transaction.commit()
  case "abort": abort()
  case "exit of a worker":
    _ = RunLoop.main.schedule(
      in: .milliseconds(1), repeating: .milliseconds(1), mode: .common,
      block: MainActor.handler { (_: Timer) in
        terminal.repaint()
        client.show(terminal)
        Drawn.count.add(1, ordering: .relaxed)
      })
    exitOnThread()
  case "errors":
    write("written meanwhile", to: STDERR_FILENO)
    write("and more", to: STDERR_FILENO)
    print("printed")
  case "endless log": client.logWithoutFrames()
  case "children": client.runChildren()
  case "log":
    for number in 0..<3000 { write("line \(number) " + String(repeating: "x", count: 1000), to: STDERR_FILENO) }
    fatalError("the reason")
  default: break
  }
}

enum Drawn { static let count = Atomic<Int>(0) }

/// Makes an exit wait for further frames after the terminal, which is opened later, has been restored.
func drawAtExit() {
  atexit {
    let before = Drawn.count.load(ordering: .relaxed)
    while Drawn.count.load(ordering: .relaxed) < before + 3 { usleep(1000) }
    note("drawn")
  }
}

func exitOnThread() {
  var thread = pthread_t()
  pthread_create(&thread, nil, { _ in exit(7) }, nil)
}

/// Handles faults and two other signals with one handler, and then continues.
func installOwnHandler() {
  var action = sigaction()
  action.sa_flags = SA_SIGINFO
  action.__sigaction_handler.sa_sigaction = { _, _, _ in _ = Glibc.write(3, "handled\n", 8) }
  for signal in [SIGSEGV, SIGUSR1, SIGHUP] { sigaction(signal, &action, nil) }
}

/// Acts as a shell: runs the program in its own process group in the foreground, and continues it whenever it has
/// stopped and descriptor 4 is readable.
@MainActor
func runShell(_ how: String) -> Int32 {
  signal(SIGTTOU, SIG_IGN)
  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
  posix_spawnattr_setpgroup(&attributes, 0)
  var usual = sigset_t()
  sigemptyset(&usual)
  sigaddset(&usual, SIGTTOU)
  posix_spawnattr_setsigdefault(&attributes, &usual)
  var process: pid_t = 0
  let arguments: [UnsafeMutablePointer<CChar>?] = [strdup(CommandLine.arguments[0]), strdup(how), nil]
  guard posix_spawn(&process, CommandLine.arguments[0], nil, &attributes, arguments, environ) == 0 else { return 99 }
  tcsetpgrp(0, process)
  note("process \(process)")
  while true {
    var status: Int32 = 0
    guard waitpid(process, &status, WUNTRACED) == process else { continue }
    if status & 0xFF == 0x7F {
      tcsetpgrp(0, getpgrp())
      var modes = termios()
      tcgetattr(0, &modes)
      note(
        "stopped by \(status >> 8 & 0xFF), \(modes.c_lflag & tcflag_t(ICANON | ECHO) == tcflag_t(ICANON | ECHO) ? "cooked" : "raw")"
      )
      var byte: UInt8 = 0
      read(4, &byte, 1)
      tcsetpgrp(0, process)
      kill(-process, SIGCONT)
    } else {
      note("status \(status)")
      return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }
  }
}

let arguments = CommandLine.arguments
if arguments.count == 3, arguments[1] == "shell" { exit(runShell(arguments[2])) }
if arguments.last == "nohup" { signal(SIGHUP, SIG_IGN) }
if arguments.last == "own handler" { installOwnHandler() }
if arguments.last == "exit of a worker" { drawAtExit() }
let client = Client(how: arguments.last ?? "return")
let terminal = Terminal(inlineRows: getenv("INLINE").flatMap { Int(String(cString: $0)) })
terminal.client = client
do throws(DisplayError) {
  try terminal.open()
} catch {
  write("\(error)", to: STDERR_FILENO)
  exit(2)
}
client.show(terminal)
note("open \(terminal.size.width)x\(terminal.size.height)")
_ = RunLoop.main.runUntilStopped()
terminal.close()
note("frames \(client.frames)")
write("after", to: STDOUT_FILENO)
