// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay

@MainActor
private final class Link: Responder {
  var following: Responder?
  var keys = 0
  override var next: Responder? { following }
  override func keyPressed(_ key: KeyEvent) {
    keys += 1
    super.keyPressed(key)
  }
}

@Suite("The chain of responders")
@MainActor
struct ResponderChainTests {
  @Test("an event travels through a responder chain of any length")
  func long() {
    let links = (0..<3500).map { _ in Link() }
    for (link, next) in zip(links, links.dropFirst()) { link.following = next }
    links[0].keyPressed(KeyEvent(.enter))
    #expect(links.allSatisfy { $0.keys == 1 })
  }

  @Test("a responder chain with a cycle ends the process with the responder's name", arguments: [1, 3])
  func cycle(length: Int) async throws {
    let result =
      switch length {
      case 1:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await ResponderChainTests.makeCycle(of: 1)
        }
      default:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await ResponderChainTests.makeCycle(of: 3)
        }
      }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("the chain of responders comes back to Link"), "\(message)")
  }

  /// Sends an event into a chain whose last responder leads back to the first.
  private static func makeCycle(of length: Int) {
    let links = (0..<length).map { _ in Link() }
    for (index, link) in links.enumerated() { link.following = links[(index + 1) % length] }
    links[0].keyPressed(KeyEvent(.enter))
  }
}
