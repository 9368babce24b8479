// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopTransactions

/// The page that F1 shows: a picture drawn by workers, the frame times of the last seconds, a sheet to paint on, and
/// a table of a million rows.
@MainActor
final class Showcase: View {
  /// Returns the number of frames presented so far.
  var frameCount: () -> Int = { 0 }

  private let plasma = DisplayNode(Plasma(time: 0))
  private let chart = Chart()
  private let rate = Label("0 frames a second", style: Style(foreground: .palette(14)))
  private let beat = ProgressView(style: Style(foreground: .rgb(120, 220, 160)))
  private let sheet = PaintView()
  private let table: NodeListView
  private let pictures: StackView
  private let title = Label(
    " RunLoopDisplay   F1 goes back   arrows and the wheel scroll   the mouse paints", style: .reversed)
  private let painting: BoxView
  private var timers: [Timer] = []
  private var framesBefore = 0
  private let begin = RunLoop.main.now

  init() {
    table = NodeListView { index in TableRow(index: index) }
    table.rowCount = 1_000_000
    table.showsVerticalScrollIndicator = true
    table.columns = [
      ListColumn("Row", width: 9, alignment: .right), ListColumn("Square", width: 15, alignment: .right),
      ListColumn("Wave"),
    ]
    table.name = "table"
    table.selectedRow = 0
    let figures = StackView(.vertical)
    figures.addArrangedSubview(chart, isFlexible: true)
    figures.addArrangedSubview(rate)
    figures.addArrangedSubview(beat)
    painting = BoxView("Paint here", content: sheet)
    pictures = StackView(.horizontal)
    for (title, view) in [("Drawn by workers", plasma.view as View), ("Frames", figures)] {
      pictures.addArrangedSubview(BoxView(title, content: view), isFlexible: true)
    }
    pictures.addArrangedSubview(painting, isFlexible: true)
    super.init()
    title.lineBreakMode = .truncatingTail
    title.background = .reversed
    for view in [title, pictures, table] { addSubview(view) }
    background = .plain
    isHidden = true
  }

  override var drawsContents: Bool { false }

  /// Shows the page, and animates it while it is visible.
  func show(moves: Bool) {
    isHidden = false
    table.becomeFirstResponder()
    guard moves else { return }
    framesBefore = frameCount()
    timers = [
      RunLoop.main.schedule(in: .zero, repeating: .milliseconds(80), mode: .common) { [weak self] _ in
        MainActor.assumeIsolated { self?.move() }
      },
      RunLoop.main.schedule(in: .milliseconds(500), repeating: .milliseconds(500), mode: .common) { [weak self] _ in
        MainActor.assumeIsolated { self?.measure() }
      },
    ]
  }

  func hide() {
    isHidden = true
    for timer in timers { timer.invalidate() }
    timers = []
  }

  private func move() {
    let time = (RunLoop.main.now - begin) / .seconds(1)
    plasma.content = Plasma(time: time)
    beat.progress = time.truncatingRemainder(dividingBy: 4) / 4
  }

  private func measure() {
    let frames = (frameCount() - framesBefore) * 2
    framesBefore = frameCount()
    chart.add(frames)
    rate.text = "\(frames) frames a second"
  }

  /// Lays out the table and as many of the pictures as the screen has room for.
  override func layoutSubviews() {
    let size = bounds.size
    let height = size.height >= 14 ? max(6, size.height * 2 / 5) : 0
    pictures.isHidden = height == 0
    painting.isHidden = size.width < 60
    title.frame = Rect(x: 0, y: 0, width: size.width, height: 1)
    pictures.frame = Rect(x: 0, y: 1, width: size.width, height: height)
    table.frame = Rect(x: 0, y: 1 + height, width: size.width, height: max(0, size.height - 1 - height))
  }
}

/// A field of colors that blend into each other, with two pixels in a cell.
private struct Plasma: NodeContent {
  var time: Double

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    let size = canvas.visibleRect.size
    for y in 0..<size.height where !cancellation.isCancelled {
      for x in 0..<size.width {
        let style = Style(foreground: color(x, 2 * y), background: color(x, 2 * y + 1))
        canvas.draw("▀", at: Point(x: x, y: y), style: style)
      }
    }
  }

  private func color(_ x: Int, _ y: Int) -> Color {
    let (x, y) = (Double(x) / 9, Double(y) / 7)
    let value = wave(x + time) + wave(y - time / 2) + wave((x + y) / 2 + time / 3) + wave((x * x + y * y).squareRoot())
    func part(_ shift: Double) -> UInt8 { UInt8(127.5 + 127 * wave(value + shift)) }
    return .rgb(part(0), part(2.1), part(4.2))
  }

  /// A sine, accurate enough for a picture.
  private func wave(_ angle: Double) -> Double {
    let turns = angle / (2 * .pi)
    let place = (turns - turns.rounded(.down)) * 2 - 1
    return -4 * place * (1 - abs(place))
  }
}

/// A row of the table: its number, the number's square, and a bar, in the list's columns.
private struct TableRow: NodeContent {
  var index: Int

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    let (number, square) = ("\(index)", "\(index * index)")
    canvas.draw(number, at: Point(x: 9 - number.count, y: 0), style: Style(attributes: .bold))
    canvas.draw(square, at: Point(x: 25 - square.count, y: 0))
    let room = canvas.visibleRect.size.width - 26
    guard room > 0 else { return }
    let place = index % 40
    let length = room * (place < 20 ? place : 40 - place) / 20
    for x in 0..<length {
      let color = Color.rgb(UInt8(60 + 190 * x / max(1, room)), 120, UInt8(240 - 180 * x / max(1, room)))
      canvas.draw("━", at: Point(x: 26 + x, y: 0), style: Style(foreground: color))
    }
  }
}

/// A bar chart of numbers, the latest at the right, with a resolution of an eighth of a cell.
@MainActor
private final class Chart: View {
  private var numbers: [Int] = []
  private static let parts: [Character] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

  func add(_ number: Int) {
    numbers.append(number)
    if numbers.count > 400 { numbers.removeFirst() }
    setNeedsDisplay()
  }

  override func draw(_ canvas: inout Canvas) {
    let (width, height) = (bounds.size.width, bounds.size.height)
    let shown = numbers.suffix(max(0, width))
    let highest = max(1, shown.max() ?? 1)
    for (place, number) in shown.enumerated() {
      let eighths = number * height * 8 / highest
      let x = width - shown.count + place
      for y in 0..<height {
        let part = min(8, max(0, eighths - (height - 1 - y) * 8))
        let color = Color.rgb(UInt8(70 + 150 * (height - y) / max(1, height)), 200, 140)
        canvas.fill(Rect(x: x, y: y, width: 1, height: 1), Self.parts[part], style: Style(foreground: color))
      }
    }
  }
}

/// A sheet to paint on with the mouse; a double tap clears it.
@MainActor
private final class PaintView: View {
  private var points: [Point: Color] = [:]
  private var strokes = 0
  private var last = Point.zero
  private static let colors: [Color] = [
    .rgb(240, 110, 110), .rgb(240, 200, 90), .rgb(120, 220, 130), .rgb(100, 180, 250), .rgb(210, 130, 240),
  ]

  init() {
    super.init()
    let pan = PanGestureRecognizer { [unowned self] gesture in
      if gesture.state == .began {
        strokes += 1
        last = gesture.location(in: self) - gesture.translation
      }
      paint(to: gesture.location(in: self))
    }
    addGestureRecognizer(pan)
    addGestureRecognizer(
      TapGestureRecognizer(tapsRequired: 2) { [unowned self] _ in
        points = [:]
        setNeedsDisplay()
      })
  }

  /// Paints a line, because movements that were read together are merged.
  private func paint(to end: Point) {
    let (dx, dy) = (end.x - last.x, end.y - last.y)
    let steps = max(1, abs(dx), abs(dy))
    for step in 0...steps {
      let point = Point(x: last.x + dx * step / steps, y: last.y + dy * step / steps)
      if bounds.contains(point) { points[point] = Self.colors[strokes % Self.colors.count] }
    }
    last = end
    setNeedsDisplay()
  }

  override func draw(_ canvas: inout Canvas) {
    if points.isEmpty {
      canvas.draw("drag to paint", at: Point(x: 1, y: 0), style: Style(attributes: .dim))
      canvas.draw("2 clicks clear", at: Point(x: 1, y: 1), style: Style(attributes: .dim))
    }
    for (point, color) in points { canvas.draw("█", at: point, style: Style(foreground: color)) }
  }
}
