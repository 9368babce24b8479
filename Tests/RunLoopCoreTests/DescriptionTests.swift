// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The description of a loop")
struct DescriptionTests {
  @Test("the parts of a loop's description come in Core Foundation's order")
  func order() {
    let text = onVirtualTime { _, loop in
      loop.keepAlive()
      return loop.debugDescription
    }
    expect(
      text,
      inOrder: [
        "<RunLoop 0x", "{wakeup port = ", "stopped = false", "ignoreWakeUps = ", "thread = ", "depth = 0",
        "waiting blocks = 0", "current mode = ", "common modes = ",
        "common mode items = ", "modes = ", "name = kCFRunLoopDefaultMode", "sources0 = ", "sources1 = ",
        "observers = ", "timers = ", "currently ", "soft deadline in: ", "hard deadline in: ",
      ])
  }

  @Test("each item names the function it calls and its location, as long as it is valid")
  func callOuts() {
    let texts = onVirtualTime { _, loop in
      let source = RunLoop.Source {}
      let timer = Timer(at: 10) { _ in }
      let observer = RunLoop.Observer(activities: .exit) { _, _ in }
      let port = Port { _, _ in }
      let descriptor = RunLoop.DescriptorSource(descriptor: 0, events: .readable) { _, _ in }
      func texts() -> [String] {
        [source.debugDescription, timer.debugDescription, observer.debugDescription, port.debugDescription]
          + [descriptor.debugDescription, Port().debugDescription]
      }
      let valid = texts()
      source.invalidate()
      timer.invalidate()
      observer.invalidate()
      port.invalidate()
      descriptor.invalidate()
      return (valid, texts())
    }
    for text in texts.0.dropLast() {
      #expect(text.contains(/, callout = 0x[0-9a-f]+ \(\S+ \+ 0x[0-9a-f]+\)/), "\(text)")
    }
    for text in texts.1 + texts.0.suffix(1) { #expect(text.hasSuffix(", callout = (none)}"), "\(text)") }
  }

  @Test("a description contains the loop's thread, the depth of its runs and the number of waiting blocks")
  func state() {
    let texts = onVirtualTime { _, loop in
      let texts = Box<[String]>([])
      loop.perform {
        loop.perform {}
        loop.perform(inModes: ["A"]) {}
        loop.perform(inModes: ["A"]) { texts.update { $0.append(loop.debugDescription) } }
        texts.update { $0.append(loop.debugDescription) }
        loop.run(mode: "A", for: .zero)
      }
      loop.keepAlive("A")
      loop.run(mode: .default, for: .zero)
      return texts.value + [loop.debugDescription]
    }
    let thread = "thread = \\S.* \\([0-9]+\\), "
    for (text, rest) in zip(texts, ["depth = 1, waiting blocks = 3", "depth = 2, waiting blocks = 1"]) {
      #expect((try? Regex(thread + rest + ",\n").firstMatch(in: text)) != nil, "\(text.prefix(300))")
    }
    #expect(texts.count == 3)
    #expect(texts.last?.contains("depth = 0, waiting blocks = ") == true)
  }

  @Test("items that keep a run alive are listed whatever the dates of their timers")
  func keptItems() {
    let details = onVirtualTime { time, loop in
      time.advance(by: .milliseconds(5))
      let deadlines = [-1 << 62, -1, 1, 1 << 62].map { loop.now.advanced(by: .seconds($0)) }
      return deadlines.map { deadline in
        let timer = Timer(deadline: deadline) { _ in }
        let details = Box<[String]>([])
        loop.perform {
          details.update { $0 = loop.keptItems.map(\.detail) }
          timer.invalidate()
        }
        loop.add(timer, forMode: .default)
        loop.run(mode: .default, for: .zero)
        return details.value
      }
    }
    #expect(details == [["once, in 0 s"], ["once, in 0 s"], ["once, in 1 s"], ["once, has no date"]])
    #expect(Span.text(.max - 1) == "2562048 h")
  }

  @Test("each item is listed in each of its modes, and once more if it is common")
  func items() throws {
    let failures = try onVirtualTime { _, loop in
      Result {
        let source = loop.keepAlive()
        loop.add(source, forMode: "A")
        let port = Port { _, _ in }
        loop.add(port, forMode: "A")
        let observer = RunLoop.Observer(activities: .beforeWaiting) { _, _ in }
        loop.add(observer, forMode: .common)
        let timer = Timer(at: 10) { _ in }
        try loop.addCommonMode("B")
        loop.add(timer, forMode: .common)
        loop.add(timer, forMode: "A")
        let removed = loop.keepAlive()
        loop.remove(removed, forMode: .default)
        let text = loop.debugDescription
        let expected: [(AnyObject, Int)] = [(source, 2), (port, 1), (observer, 3), (timer, 4), (removed, 0)]
        return expected.compactMap { object, count -> String? in
          let seen = text.ranges(of: addressDescription(object) + ">").count
          return seen == count ? nil : "\(object) \(seen) times, not \(count)"
        }
      }
    }.get()
    #expect(failures == [])
  }

  @Test("modes are listed by name, each with its contents in the order in which they are served")
  func modes() throws {
    let (text, names) = try onVirtualTime { time, loop in
      Result {
        time.advance(by: .milliseconds(5))
        let late = RunLoop.Source(order: 3) {}
        let early = RunLoop.Source(order: -1) {}
        let second = RunLoop.Observer(activities: .exit, repeats: false, order: 9) { _, _ in }
        let first = RunLoop.Observer(activities: [.entry, .beforeWaiting], order: -9) { _, _ in }
        let slow = Timer(at: 30) { _ in }
        let fast = Timer(at: 20, every: .milliseconds(500), tolerance: .milliseconds(2)) { _ in }
        for source in [late, early] { loop.add(source, forMode: "A") }
        for observer in [second, first] { loop.add(observer, forMode: "A") }
        for timer in [slow, fast] { loop.add(timer, forMode: "A") }
        try loop.addCommonMode("A")
        let items: [AnyObject] = [early, late, first, second, fast, slow]
        return (loop.debugDescription, items.map(addressDescription))
      }
    }.get()
    expect(
      text,
      inOrder: [
        "current mode = (none)", "common modes = ", "count = 2", "\"kCFRunLoopDefaultMode\"", "\"A\"",
        "common mode items = ", "count = 0", "modes = ", "count = 2", "name = A",
        "sources0 = ", "count = 2",
        "<RunLoop.Source \(names[0])>{signalled = No, valid = Yes, order = -1", "version = 0",
        "<RunLoop.Source \(names[1])>{signalled = No, valid = Yes, order = 3", "version = 0",
        "sources1 = (null)", "observers = ",
        "<RunLoop.Observer \(names[2])>{valid = Yes, activities = 0x21, repeats = Yes, order = -9",
        "<RunLoop.Observer \(names[3])>{valid = Yes, activities = 0x80, repeats = No, order = 9",
        "timers = ",
        "<Timer \(names[4])>{valid = Yes, firing = No, interval = 0.5, tolerance = 0.002",
        "next fire date = 0.015 @ 20000000",
        "<Timer \(names[5])>{valid = Yes, firing = No, interval = 0.0, tolerance = 0.0",
        "next fire date = 0.025 @ 30000000",
        "currently 5000000", "soft deadline in: 0.015 sec (@ 20000000)", "hard deadline in: 0.017 sec (@ 22000000)",
        "name = kCFRunLoopDefaultMode", "sources0 = (null)", "sources1 = (null)", "observers = (null)",
        "timers = (null)", "soft deadline in: never", "hard deadline in: never",
      ])
  }

  @Test("in a call-out, the description contains the mode, a pending stop, signaled sources and the call-out")
  func running() {
    let (text, name) = onVirtualTime { _, loop in
      let text = Box("")
      let source = loop.keepAlive("A")
      let port = Port { _, _ in }
      let timer = Timer(at: 10) { _ in
        source.signal()
        try? port.send(.init())
        loop.stop()
        text.value = loop.debugDescription
      }
      loop.add(port, forMode: "A")
      loop.add(timer, forMode: "A")
      loop.run(mode: "A", for: .seconds(1))
      return (text.value, addressDescription(timer))
    }
    expect(
      text,
      inOrder: [
        "stopped = true", "ignoreWakeUps = true", "current mode = A", "name = A", "signalled = Yes", "version = 1",
        "messages = 1", "<Timer \(name)>{valid = Yes, firing = Yes",
      ])
  }

  @Test("before the wait wake-ups count, after it and outside every run they are ignored", .rule(.r47, .r48))
  func ignoreWakeUps() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let write: @Sendable () -> Void = {
        log.write(loop.debugDescription.contains("ignoreWakeUps = true") ? "ignored" : "counts")
      }
      loop.keepAlive()
      write()
      for activity in RunLoop.Activity.stages { loop.once(activity, write) }
      loop.run(mode: .default, for: .milliseconds(1))
      write()
      return log.text
    }
    #expect(log == "ignored counts counts counts counts ignored ignored ignored")
  }

  @Test("items outside all loops can be described")
  func alone() {
    let source = RunLoop.Source(order: 2) {}
    source.signal()
    #expect(source.debugDescription.contains("signalled = Yes, valid = Yes, order = 2"))
    source.invalidate()
    #expect(source.debugDescription.contains("signalled = No, valid = No, order = 2"))
    let timer = Timer(deadline: Tick.never.instant) { _ in }
    #expect(timer.debugDescription.contains("next fire date = never"))
    timer.invalidate()
    #expect(timer.debugDescription.contains("valid = No"))
    let observer = RunLoop.Observer(activities: .all) { _, _ in }
    observer.invalidate()
    #expect(observer.debugDescription.contains("valid = No, activities = 0xfffffff"))
    final class Special: Port, @unchecked Sendable {}
    #expect(Special().debugDescription.hasPrefix("<Special 0x"))
  }

  private func expect(
    _ text: String, inOrder parts: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var rest = text[...]
    for part in parts {
      guard let range = rest.firstRange(of: part) else {
        Issue.record("\"\(part)\" is missing in: \(rest)", sourceLocation: sourceLocation)
        return
      }
      rest = rest[range.upperBound...]
    }
  }
}
