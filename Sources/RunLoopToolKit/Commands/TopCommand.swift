// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
package import RunLoopDisplay
import RunLoopThreads

/// `runloop top`: shows the loops of a process live.
struct TopCommand: ObservingCommand {
  static let name = "top"
  static let usage = """
    usage: runloop top PID|NAME [--thread NAME]

    Shows the run loops of a process while they run: what each does, how busy it was in the last second, how
    much waits, how long work has waited in the last ten seconds, and what the selected loop has called in
    them, by code. The process records meanwhile. While nothing happens in it, nothing happens here.

      q           ends
      ↑ ↓, mouse  select a loop; the wheel scrolls
      s, mouse    sorts by the next column, or by the one whose title was clicked
      p           holds still, and goes on
      ?           says what is shown

      --thread NAME  only the loop of the thread of that name

    Exit status: 0 when it was ended or the process has, 1 if there is nothing to be seen or no terminal to
    show it on, 2 for arguments that make no sense.
    """
  static let options = Arguments.Options(values: ["--thread"])

  private let process: Int32
  private let thread: String?

  init(_ arguments: Arguments) throws(Arguments.Mistakes) {
    process = try arguments.process()
    thread = arguments.values["--thread"]
    if arguments.isJSON { throw .init(messages: ["a screen is for people: use \"runloop ps --json\" or \"trace\""]) }
  }

  func run(_ output: Output) throws(RecordError) -> Int32 {
    let target = try TargetProcess(process)
    let file = try target.openRecords()
    if let thread { try LoopReader.require(thread, in: file, of: target) }
    let result = MainActor.assumeIsolated { () -> Result<Top.End, RecordError> in
      do throws(RecordError) {
        return .success(try Top(target, file, on: Terminal(), thread: thread).run())
      } catch {
        return .failure(error)
      }
    }
    if try result.get() == .targetEnded { output.print("process \(process) has ended") }
    return CommandStatus.success.rawValue
  }
}

/// The application of `runloop top`.
@MainActor
package final class Top {
  package enum End {
    case quit
    case targetEnded
  }

  private let file: RecordFile
  private var hold: LevelHold?
  private let reader: TopReader
  private let screen = TopScreen()
  private let parking: Parking?
  private let thread: String?
  package let application: Application
  private var timer: Timer?
  private var isPaused = false
  private var end = End.quit
  private var failure: RecordError?
  /// Whether it is waiting for activity in the process.
  package private(set) var isParked = false
  /// The number of observations.
  package private(set) var lookCount = 0

  package init(
    _ target: TargetProcess, _ file: RecordFile, on device: any DisplayDevice, thread: String? = nil
  ) throws(RecordError) {
    self.file = file
    self.thread = thread
    reader = TopReader(target, file)
    parking = Parking(file)
    application = Application(device: device, window: screen)
    screen.whenKey = { [unowned self] in press($0) }
    screen.whenSelected = { [unowned self] in showDetails() }
  }

  package func run() throws(RecordError) -> End {
    defer { hold?.release() }
    let process = try watchEnd()
    defer { process?.invalidate() }
    let timer = RunLoop.current.schedule(in: .zero, repeating: .milliseconds(100)) { [weak self] _ in
      MainActor.assumeIsolated { self?.look() }
    }
    RunLoop.main.add(timer, forMode: .common)
    self.timer = timer
    defer { timer.invalidate() }
    do throws(DisplayError) {
      _ = try application.run()
    } catch {
      throw RecordError("\(error)")
    }
    if let failure { throw failure }
    return end
  }

  /// Watches for the end of the process without polling.
  private func watchEnd() throws(RecordError) -> RunLoop.DescriptorSource? {
    let descriptor = crl_process_open(reader.target.number)
    guard descriptor >= 0 else { return nil }
    let source = RunLoop.DescriptorSource(descriptor: descriptor, events: .readable, repeats: false) {
      [weak self] _, _ in
      MainActor.assumeIsolated { self?.stop(.targetEnded) }
    }
    do throws(RunLoopError) {
      try RunLoop.main.add(source, forMode: .common)
    } catch {
      close(descriptor)
      return nil
    }
    return source
  }

  private func stop(_ end: End) {
    self.end = end
    application.terminate()
  }

  private func look() {
    guard !isPaused else { return }
    lookCount += 1
    do throws(RecordError) {
      // Acquired after the terminal was set up, so that a fatal signal releases the level before it restores the
      // terminal.
      if hold == nil { hold = try LevelHold(file, CRL_RECORD.rawValue) }
      let loops = try reader.read().filter { thread == nil || $0.name == thread }
      screen.show(loops)
      let lost = reader.lost > 0 ? "   too fast: the lower table shows a part" : ""
      screen.title.text =
        "runloop top   process \(reader.target.number)   \(loops.count) \(loops.count == 1 ? "loop" : "loops")\(lost)"
      showDetails()
    } catch {
      failure = reader.target.isAlive ? error : nil
      return stop(.targetEnded)
    }
    if reader.isSettled { park() }
  }

  private func showDetails() {
    guard let slot = screen.selectedSlot, let loop = screen.loops.first(where: { $0.slot == slot }) else {
      screen.detailTitle.text = ""
      return screen.show([TopReader.Line]())
    }
    let lines = reader.lines(of: slot, most: 100)
    let name = ForeignText.shown(loop.name)
    screen.show(lines)
    guard !screen.isExplaining else { return explainTitles() }
    let what = loop.isHung ? "has called nothing else" : "is \(loop.state) and has called nothing"
    screen.detailTitle.text =
      lines.isEmpty ? "\(name) \(what) in the last 10 s" : "what \(name) has called in the last 10 s"
    screen.detailHead.text =
      lines.isEmpty ? "" : TopScreen.line(["COUNT", "TOTAL", "LONGEST"], "KIND", "CODE", screen.bounds.size.width)
  }

  private func explainTitles() {
    screen.detailTitle.text = "what is shown, and the keys"
    screen.detailHead.text = ""
  }

  /// Waits for activity in an idle process.
  private func park() {
    guard let parking, !isParked else { return }
    isParked = true
    timer?.park()
    Thread.detachNewThread { [weak self] in
      parking.wait()
      RunLoop.main.perform { MainActor.assumeIsolated { self?.goOn() } }
    }
  }

  private func goOn() {
    isParked = false
    guard !isPaused else { return }
    reader.resume()
    timer?.move(after: .zero)
  }

  private func press(_ key: KeyEvent) -> Bool {
    switch key.key {
    case .character("q"), .escape: stop(.quit)
    case .character("s"): screen.sortOtherwise()
    case .character("?"):
      screen.explain(!screen.isExplaining)
      showDetails()
    case .character("p"):
      isPaused.toggle()
      screen.title.text += isPaused ? "   paused" : ""
      if isPaused { timer?.park() } else if !isParked { goOn() }
    default: return false
    }
    return true
  }
}
