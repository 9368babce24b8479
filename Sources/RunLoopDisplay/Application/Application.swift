// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
public import RunLoopTransactions

/// An application that shows a window on a device, driven by the main run loop.
///
/// ```Swift
/// @main struct Program {
///   static func main() throws {
///     let window = Window()
///     window.addSubview(Label("hello", frame: Rect(x: 0, y: 0, width: 5, height: 1)))
///     try Application(device: Terminal(), window: window).run()
///   }
/// }
/// ```
///
/// ``run()`` opens the device and runs the main loop until ``terminate()`` is called. The device's source 1 only
/// reads: its events are queued, and a source 0 of the order `TurnOrder.eventQueue` handles them. Gesture actions are
/// called before the loop waits, followed by the commit, which lays out, draws and writes one frame.
/// <doc:FromKeyPressToCommit> follows a key through these steps.
///
/// The application is the last responder in the chain. Ctrl-C terminates it, Ctrl-L repaints the screen and Ctrl-Z
/// suspends the process, unless an earlier responder handles these keys.
///
/// An application can run more than once. Until it is released, only its ``pipeline`` remains in the main loop between
/// runs.
///
/// The corresponding class of UIKit is `UIApplication`.
@MainActor
public final class Application: Responder {
  /// The reason that ``run()`` returned.
  public enum End: Hashable, Sendable {
    /// ``Application/terminate()`` was called.
    case terminated
    /// The device was disconnected.
    case hungUp
  }

  /// The running application, or `nil` if there is none.
  ///
  /// If several applications are running, it is the one that was started last. If none is running, it is the last one
  /// created.
  public static var shared: Application? { running.last?.application ?? made }

  private static weak var made: Application?
  private static var running: [(id: ObjectIdentifier, application: Application)] = []

  /// The device that shows the window.
  public let device: any DisplayDevice
  /// The window, which has the size of the device.
  public let window: Window
  /// The main run loop.
  public let loop: RunLoop
  /// The pipeline that commits frames, whose stages below `TurnOrder.commit` run before the layout.
  public let pipeline: CommitPipeline
  /// The object that observes the application's steps, to be set before ``run()``; `nil` by default.
  public weak var trace: (any ApplicationTrace)?
  /// A closure called when the loop started to run in a different mode, or `nil`, the default.
  public var modeDidChange: ((RunLoop.Mode) -> Void)?
  /// The number of presented frames that changed anything on the device, initially 0.
  public internal(set) var frameCount = 0

  let gestures: GestureEnvironment
  var items: ApplicationItems?
  var events = EventQueue()
  var modes = ModeStack()
  var frame = FrameState()
  /// The completion blocks that are waiting for a frame, and those whose frame was presented.
  var completions: [ShownBlock] = []
  var shown: [ShownBlock] = []
  private(set) var end: End?
  /// The depth of the application's own run in the loop.
  private var runDepth = 0
  /// Stops the application's run again if a nested run consumed the stop.
  private var runEnder: RunLoop.Observer?

  /// Creates an application, which does nothing until it runs.
  ///
  /// - Parameters:
  ///   - device: The device that shows the window.
  ///   - window: The window to show.
  ///   - frameInterval: The minimum time between two frames, 1/60 second by default. Zero or less means no limit.
  /// - Precondition: The window does not belong to another application that is running.
  public init(device: any DisplayDevice, window: Window, frameInterval: Duration = .seconds(1) / 60) {
    self.device = device
    self.window = window
    loop = RunLoop.main
    pipeline = CommitPipeline(loop: loop, frameInterval: frameInterval)
    gestures = GestureEnvironment(loop: loop)
    super.init()
    Self.made = self
    gestures.application = self
    takeWindow()
    addStages()
  }

  private func takeWindow() {
    if let other = window.application, other !== self, other.items != nil {
      fatalError("the window \(window.displayName) belongs to an application that is running: another cannot show it")
    }
    window.application = self
  }

  isolated deinit {
    // If the loop has ended, so has the pipeline.
    if RunLoop.currentIfMade === loop { pipeline.invalidate() }
  }

  /// The mouse events that the device reports, by default presses and the wheel.
  ///
  /// While mouse events are reported, the terminal does not select text with the mouse itself.
  public var mouseTracking: MouseTracking {
    get { device.mouseTracking }
    set { device.mouseTracking = newValue }
  }

  /// The mode in which the loop runs, or is about to run.
  public var mode: RunLoop.Mode { modes.current }

  /// Opens the device, runs the main loop until the application ends, and closes the device.
  ///
  /// The loop runs in the mode that was pushed last, or in the default mode. When a mode is pushed or popped, the
  /// current run ends and another one in the new mode follows; these runs are not nested.
  ///
  /// - Returns: The reason that the application ended.
  /// - Throws: A ``DisplayError`` if the device cannot be opened, in which case nothing has changed.
  /// - Precondition: This is the main thread, and no application with the same window is running.
  @discardableResult
  public func run() throws(DisplayError) -> End {
    try start()
    defer { finish() }
    runDepth = loop.runDepth + 1
    while true {
      if let end { return end }
      // A stop from elsewhere ends only one run.
      loop.run(mode: modes.current, for: .infinity)
    }
  }

  /// Terminates the application, which makes ``run()`` close the device and return.
  ///
  /// Changes made before are still shown.
  public func terminate() { terminate(.terminated) }

  func terminate(_ end: End) {
    guard self.end == nil else { return }
    self.end = end
    endRun()
  }

  /// Ends the application's own run.
  ///
  /// A stop ends only the innermost run, which is a nested one if a handler runs the loop. The observer stops the
  /// application's own run again when the nested one has ended.
  private func endRun() {
    loop.stop()
    guard items != nil else { return }
    let observer = RunLoop.Observer(
      activities: .beforeTimers,
      handler: MainActor.handler { [weak self] _, _ in
        if let self, loop.runDepth <= runDepth { loop.stop() }
      })
    runEnder = observer
    loop.add(observer, forMode: .common)
  }

  /// Makes the loop run in another mode until the owner pops it.
  ///
  /// Each owner has at most one mode: a second push has no effect. A mode that is not a common mode would not serve
  /// the device. It is not pushed, which is reported on standard error.
  public func push(_ mode: RunLoop.Mode, for owner: AnyObject) {
    guard loop.commonModes.contains(mode) else {
      Diagnostic.noMode.report("the mode \(mode) was not pushed: an application runs in common modes only")
      return
    }
    if modes.push(mode, for: ObjectIdentifier(owner)) { changeMode() }
  }

  /// Pops the mode of an owner, if it has pushed one.
  public func popMode(for owner: AnyObject) {
    if modes.pop(ObjectIdentifier(owner)) { changeMode() }
  }

  private func changeMode() {
    loop.stop()
    modeDidChange?(modes.current)
  }

  /// Handles Ctrl-C, Ctrl-L and Ctrl-Z.
  override public func keyPressed(_ key: KeyEvent) {
    switch (key.key, key.modifiers) {
    case (.character("c"), .control): terminate()
    case (.character("l"), .control): repaint()
    case (.character("z"), .control): device.suspend()
    default: break
    }
  }

  /// Draws the whole screen again, regardless of what the device shows.
  public func repaint() {
    device.repaint()
    frame.isPresentationForced = true
    setNeedsCommit()
  }

  /// Opens the device and adds the application's sources and observers to the loop.
  package func start() throws(DisplayError) {
    guard items == nil else { fatalError("an application was run that is running already") }
    takeWindow()
    device.client = self
    do {
      try device.open()
    } catch {
      device.client = nil
      throw error
    }
    end = nil
    // The application may have been suspended when it last ended.
    frame = FrameState()
    device.cursor = nil
    items = ApplicationItems(self)
    Self.running.append((ObjectIdentifier(self), self))
    resize(to: device.size)
    setNeedsCommit()
  }

  /// Closes the device and removes the application's sources and observers from the loop.
  package func finish() {
    window.cancelTouches { _ in true }
    // Reports the cancellation of gestures, and shows the last changes.
    gestures.update()
    if end != .hungUp { pipeline.flush() }
    device.close()
    device.client = nil
    items?.invalidate()
    items = nil
    Self.running.removeAll { $0.id == ObjectIdentifier(self) }
    runEnder?.invalidate()
    runEnder = nil
    gestures.stop()
    events = EventQueue()
    let mode = modes.current
    modes = ModeStack()
    if mode != modes.current { modeDidChange?(modes.current) }
    callShown(all: true)
  }
}
