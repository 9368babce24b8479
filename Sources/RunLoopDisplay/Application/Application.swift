// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
public import RunLoopTransactions

/// A window on a device, and the main run loop that serves both.
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
/// ``run()`` takes the device and runs the main loop until ``terminate()``. The device's source 1 only reads: its
/// events are queued, and handled by a source 0 of the order `TurnOrder.eventQueue`. The actions of gestures follow
/// before the loop waits, and then the commit lays out, draws and writes one frame. <doc:FromKeyPressToCommit> follows
/// a key through all of it.
///
/// The application is the last in the chain of responders. It ends with Ctrl-C, shows everything anew with Ctrl-L, and
/// is suspended with Ctrl-Z, unless a responder before it handles these keys.
///
/// An application can run again. Its ``pipeline``, the only thing that it keeps in the main loop beyond a run, is
/// released with it.
///
/// The corresponding class of UIKit is `UIApplication`.
@MainActor
public final class Application: Responder {
  /// The reason why ``run()`` has returned.
  public enum End: Hashable, Sendable {
    /// ``Application/terminate()`` was called.
    case terminated
    /// The device has gone.
    case hungUp
  }

  /// The application that is running; nil if there is none.
  ///
  /// Of several it is the one that was started last. If none is running, it is the one that was made last.
  public static var shared: Application? { running.last?.application ?? made }

  private static weak var made: Application?
  private static var running: [(id: ObjectIdentifier, application: Application)] = []

  /// The device that the window is shown on.
  public let device: any DisplayDevice
  /// The window, in the size of the device.
  public let window: Window
  /// The loop that serves the application: the main one.
  public let loop: RunLoop
  /// The commits of the main loop, to which you can add stages: those of an order below `TurnOrder.commit` are
  /// performed before the layout.
  public let pipeline: CommitPipeline
  /// The object that watches the application; set it before ``run()``.
  public weak var trace: (any ApplicationTrace)?
  /// Called when the loop has begun to run in another mode than before.
  public var modeDidChange: ((RunLoop.Mode) -> Void)?
  /// How many frames have been presented that changed anything on the device.
  public internal(set) var frameCount = 0

  let gestures: GestureEnvironment
  var items: ApplicationItems?
  var events = EventQueue()
  var modes = ModeStack()
  var frame = FrameState()
  /// The completion blocks that wait for a frame, and those whose frame was presented.
  var completions: [ShownBlock] = []
  var shown: [ShownBlock] = []
  private(set) var end: End?
  /// The depth of its own runs among those of the loop.
  private var runDepth = 0
  /// Ends its run when a run within it has taken the stop.
  private var runEnder: RunLoop.Observer?

  /// Makes an application, which does nothing until it runs.
  ///
  /// - Parameters:
  ///   - device: The device that shows the window.
  ///   - window: The window to show.
  ///   - frameInterval: The shortest time between two frames, a sixtieth of a second by default. Zero or less means no
  ///     limit.
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

  /// Makes the window this application's, whose it may not have been.
  private func takeWindow() {
    if let other = window.application, other !== self, other.items != nil {
      fatalError("the window \(window.displayName) belongs to an application that is running: another cannot show it")
    }
    window.application = self
  }

  isolated deinit {
    // When the loop has ended, so has the pipeline.
    if RunLoop.currentIfMade === loop { pipeline.invalidate() }
  }

  /// What the device reports of the mouse; presses and the wheel, unless it is set.
  ///
  /// Without the mouse the terminal itself selects text with it.
  public var mouseTracking: MouseTracking {
    get { device.mouseTracking }
    set { device.mouseTracking = newValue }
  }

  /// The mode that the loop runs in, or is about to run in.
  public var mode: RunLoop.Mode { modes.current }

  /// Takes the device, runs the main loop until the application ends, and releases the device.
  ///
  /// The loop runs in the default mode or in the mode that was pushed last. A push or a pop ends the run, and another
  /// run in the other mode follows: the runs are not nested.
  ///
  /// - Returns: Why the application has ended.
  /// - Throws: A ``DisplayError`` if the device cannot be taken; then nothing has been changed.
  /// - Precondition: The calling thread is the main thread, and neither this application is running nor another that
  ///   shows the same window.
  @discardableResult
  public func run() throws(DisplayError) -> End {
    try start()
    defer { finish() }
    runDepth = loop.runDepth + 1
    while true {
      if let end { return end }
      // A stop by somebody else ends one run.
      loop.run(mode: modes.current, for: .infinity)
    }
  }

  /// Ends the application: ``run()`` releases the device and returns.
  ///
  /// Changes that were made before are shown.
  public func terminate() { terminate(.terminated) }

  func terminate(_ end: End) {
    guard self.end == nil else { return }
    self.end = end
    endRun()
  }

  /// Ends the application's own run.
  ///
  /// A stop ends the innermost run only, which is another if a handler of the application runs the loop. So its own is
  /// stopped once more when that one has ended.
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

  /// Makes the loop run in another mode until its owner pops it.
  ///
  /// An owner that has pushed a mode already keeps that mode. A mode that is not common, in which nothing would serve
  /// the device, is not pushed, and that is reported on the standard error.
  public func push(_ mode: RunLoop.Mode, for owner: AnyObject) {
    guard loop.commonModes.contains(mode) else {
      Diagnostic.noMode.report("the mode \(mode) was not pushed: an application runs in common modes only")
      return
    }
    if modes.push(mode, for: ObjectIdentifier(owner)) { changeMode() }
  }

  /// Takes an owner's mode away, if it has one.
  public func popMode(for owner: AnyObject) {
    if modes.pop(ObjectIdentifier(owner)) { changeMode() }
  }

  private func changeMode() {
    loop.stop()
    modeDidChange?(modes.current)
  }

  /// Handles the keys that no responder before has handled.
  override public func keyPressed(_ key: KeyEvent) {
    switch (key.key, key.modifiers) {
    case (.character("c"), .control): terminate()
    case (.character("l"), .control): repaint()
    case (.character("z"), .control): device.suspend()
    default: break
    }
  }

  /// Shows everything anew, no matter what is on the device.
  public func repaint() {
    device.repaint()
    frame.isPresentationForced = true
    setNeedsCommit()
  }

  /// Takes the device and puts what serves the application into the loop.
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
    // It may have been suspended when it ended.
    frame = FrameState()
    device.cursor = nil
    items = ApplicationItems(self)
    Self.running.append((ObjectIdentifier(self), self))
    resize(to: device.size)
    setNeedsCommit()
  }

  /// Gives the device back and takes what served the application out of the loop.
  package func finish() {
    window.cancelTouches { _ in true }
    // Gestures report that they were cancelled, and what was changed last is to be seen.
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
