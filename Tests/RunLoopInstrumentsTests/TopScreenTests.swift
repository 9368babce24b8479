// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopToolKit

@Suite("The columns of runloop top") @MainActor struct TopScreenTests {
  private let needed = [7, 24, 12, 7, 7, 5, 5, 7, 60]

  private func columns(_ width: Int) -> [(column: TopScreen.Column, width: Int)] {
    TopScreen.columns(of: width, needed)
  }

  @Test("a screen of 80 columns shows state, share, queue and call-out, with the end of the call-out intact")
  func usual() {
    let found = columns(80)
    #expect(found.map(\.column) == [.name, .state, .busy, .queue, .callOut])
    let total = found.reduce(2 * 4) { $0 + $1.width }
    #expect(total == 80)
    let width = found.last?.width ?? 0
    let text = Text.shortened("timer blocked in clock_nanosleep()  closure #1 in Importer.load() main.swift:14", width)
    #expect(text.count == width && text.hasSuffix("main.swift:14") && text.hasPrefix("timer"), "\(text)")
  }

  @Test("a screen of 40 columns keeps state and share, and a wide one shows everything")
  func others() {
    #expect(columns(40).map(\.column) == [.name, .state, .busy])
    let total = columns(40).reduce(2 * 2) { $0 + $1.width }
    #expect(total <= 40)
    #expect(columns(200).map(\.width) == needed)
  }

  @Test("an overlong text loses its middle", arguments: [0, 1, 2, 5, 9, 10, 40])
  func shortened(width: Int) {
    let text = Text.shortened("0123456789", width)
    #expect(text.count == min(width, 10))
    if width > 2, width < 10 { #expect(text.hasPrefix("0") && text.hasSuffix("9") && text.contains("…")) }
  }
}
