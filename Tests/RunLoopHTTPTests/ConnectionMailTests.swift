// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// The queue of a connection's pending reports, as a value.
@Suite struct ConnectionMailTests {
  private func text(_ mail: inout ConnectionMail) -> String {
    var words: [String] = []
    while let (event, hasRoom) = mail.next() {
      switch event {
      case .redirect: words.append("redirect")
      case .challenge: words.append("challenge")
      case .response(let response): words.append("\(response.status.code)")
      case .data(let bytes): words.append("data:\(bytes.count)\(hasRoom ? ":room" : "")")
      case .sent(let count, _): words.append("sent:\(count)")
      case .end(let error): words.append(error?.code.name ?? "end")
      }
    }
    return words.joined(separator: " ")
  }

  @Test("consecutive data and progress events are merged; all other events keep their position")
  func order() {
    var mail = ConnectionMail()
    mail.append(.sent(1, of: 3))
    mail.append(.sent(3, of: 3))
    mail.append(.response(HTTP.Response(status: 200)))
    mail.append(.data([1]))
    mail.append(.data([2, 3]))
    mail.append(.sent(4, of: nil))
    mail.append(.data([4]))
    #expect(!mail.hasEnd && mail.byteCount == 4)
    mail.append(.end(nil))
    #expect(mail.hasEnd && mail.count == 6)
    #expect(text(&mail) == "sent:3 200 data:3 sent:4 data:1 end")
    #expect(mail.isEmpty && mail.byteCount == 0 && !mail.hasEnd)
  }

  @Test("an event put in front is delivered first, whether or not others were taken")
  func prepending() {
    var mail = ConnectionMail()
    mail.prepend(.response(HTTP.Response(status: 201)))
    mail.append(.data([1]))
    mail.append(.end(nil))
    _ = mail.next()
    mail.prepend(.response(HTTP.Response(status: 202)))
    #expect(text(&mail) == "202 data:1 end")
  }

  @Test("the mail is full at the high mark, and has room again once at the low mark")
  func marks() {
    var mail = ConnectionMail()
    let half = [UInt8](repeating: 0, count: ConnectionMail.highWater / 2)
    mail.append(.data(half))
    #expect(!mail.isFull)
    mail.append(.response(HTTP.Response(status: 200)))
    mail.append(.data(half))
    #expect(mail.isFull)
    let end = half.count
    #expect(text(&mail) == "data:\(end) 200 data:\(end):room")
    #expect(!mail.isFull)
  }
}
