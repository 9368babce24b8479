// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Bodies read as lines and as server-sent events.
@Suite struct EventTests {
  /// The lines of a text that arrives in chunks of a size.
  private func lines(_ text: String, _ size: Int, limit: Int = 100) -> [String] {
    var reader = LineReader(limit: limit)
    var (lines, rest): ([String], [UInt8]) = ([], Array(text.utf8))
    do throws(LineReader.TooLong) {
      while !rest.isEmpty {
        reader.feed(Array(rest.prefix(size)))
        rest.removeFirst(min(size, rest.count))
        while let line = try reader.next() { lines.append(line) }
      }
      if let last = reader.last() { lines.append(last) }
    } catch {
      lines.append("too long")
    }
    return lines
  }

  @Test(
    "lines end with a line feed, a carriage return or both, wherever the chunks end",
    arguments: [
      ("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]), ("a\r\nb\r\n", ["a", "b"]), ("a\rb\r", ["a", "b"]),
      ("\n\n", ["", ""]), ("\r\n\r\n", ["", ""]), ("\r\r\n\n", ["", "", ""]), ("a\r\n\nb", ["a", "", "b"]),
      ("é\n☃", ["é", "☃"]),
    ])
  func cutting(_ text: String, _ expected: [String]) {
    for size in 1...8 { #expect(lines(text, size) == expected, "chunks of \(size)") }
  }

  @Test("a line may have up to as many bytes as the limit", arguments: [1, 3, 100])
  func longLines(_ size: Int) {
    #expect(lines("12345\n", size, limit: 5) == ["12345"])
    #expect(lines("1\n123456\n", size, limit: 5) == ["1", "too long"])
    #expect(lines("123456", size, limit: 5) == ["too long"])
  }

  private func events(_ text: String, limit: Int = 1000) -> [String] {
    var parser = ServerSentEventParser(limit: limit)
    var events: [String] = []
    for line in lines(text, 7, limit: 10_000) {
      switch parser.take(line) {
      case .more: break
      case .event(let event):
        let retry = event.retry.map { " \($0.components.seconds)" } ?? ""
        events.append("\(event.type)|\(event.data)|\(event.id)\(retry)")
      case .tooLarge: events.append("too large")
      }
    }
    return events
  }

  @Test(
    "server-sent events are parsed as HTML's standard specifies",
    arguments: [
      ("data: a\n\n", ["message|a|"]), ("data:a\ndata: b\n\n", ["message|a\nb|"]),
      ("data\n\ndata\ndata\n\n", ["message||", "message|\n|"]),
      ("data:  a\n\n", ["message| a|"]), (": comment\n\n", []),
      ("event: add\ndata: 1\n\ndata: 2\n\n", ["add|1|", "message|2|"]),
      ("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", ["message|a|1", "message|b|1", "message|c|"]),
      ("id: 1\0\ndata: a\n\n", ["message|a|"]),
      ("retry: 2000\ndata: a\n\nretry: x\ndata: b\n\n", ["message|a| 2", "message|b| 2"]),
      ("\u{feff}data: a\n\n", ["message|a|"]), ("data: a", []), ("event: x\n\ndata: a\n\n", ["message|a|"]),
      ("unknown: x\ndata: a\n\n", ["message|a|"]),
    ])
  func parsing(_ text: String, _ expected: [String]) {
    #expect(events(text) == expected)
    #expect(events(text.replacing("\n", with: "\r\n")) == expected.map { $0.replacing("\r\n", with: "\n") })
  }

  @Test("the data of an event is bounded, however it is cut into lines")
  func largeEvents() {
    #expect(events("data: 12345\n\n", limit: 5) == ["message|12345|"])
    #expect(events("data: 123\ndata: 45\n\n", limit: 5).first == "too large")
  }

  @Test("the cost of an event's lines depends on their length only, however many precede them")
  func manyLines() {
    /// The minimum processor time, in nanoseconds, of several events with `count` lines. Other load only adds to it.
    func time(_ count: Int) -> Double {
      var least = Double.infinity
      for _ in 0..<5 {
        var parser = ServerSentEventParser(limit: .max)
        let begin = threadTime()
        for _ in 0..<count { _ = parser.take("data: a line of some thirty bytes") }
        least = min(least, threadTime() - begin)
      }
      return least
    }
    // Sixteen times as many lines: a quadratic algorithm would take about 250 times as long.
    #expect(time(64_000) < 40 * time(4000))
  }

  /// The processor time of this thread, in nanoseconds.
  private func threadTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
  }

  @Test("a task receives lines and events as they arrive, and one that is too long ends the request")
  func sequences() async throws {
    let rest = Latch()
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/lines": exchange.answer("one\ntwo\r\nthree")
      case "/events":
        exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        rest.wait()
        exchange.send("data: 2\n\n")
        exchange.end()
      default:
        exchange.send("HTTP/1.1 200 OK\r\n\r\n")
        exchange.send([UInt8](repeating: 97, count: 100_000))
      }
    }
    try await withClient { client in
      var lines: [String] = []
      let (text, _) = try await client.stream(for: HTTP.Request(server.url("/lines")))
      for try await line in text.lines { lines.append(line) }
      #expect(lines == ["one", "two", "three"])

      var data: [String] = []
      for try await event in try await client.stream(for: HTTP.Request(server.url("/events"))).0.serverSentEvents {
        data.append(event.data)
        // The first event has arrived before the second is sent.
        rest.open()
      }
      #expect(data == ["1", "2"])

      let (body, _) = try await client.stream(for: HTTP.Request(server.url("/long")))
      do {
        for try await _ in body.lines(upTo: 99_999) {}
        Issue.record("the line has ended")
      } catch let error as HTTP.Error {
        #expect(error.code == .tooLarge)
      }
      await eventually { server.ended.value > 0 }
    }
  }
}
