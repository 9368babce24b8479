// SPDX-License-Identifier: Apache-2.0

import CHostLoopForBenchmarks
import CoreFoundation
import Foundation
import Glibc
import RunLoopKit
import Synchronization

/// A loop that runs on its own thread in some way, and the operations to measure.
protocol Subject: AnyObject, Sendable {
  var name: String { get }
  var isAsleep: Bool { get }
  func perform(_ body: @escaping @Sendable () -> Void)
  /// Calls a body once after a delay in nanoseconds, by a timer.
  func after(_ nanoseconds: Int, _ body: @escaping @Sendable () -> Void)
  func stop()
}

/// A loop of ours, run in one of several ways.
final class OurSubject: Subject {
  let name: String
  private let loop: RunLoop

  init(_ name: String, _ run: @escaping @Sendable (RunLoop) -> Void) {
    self.name = name
    let made = Handover<RunLoop>()
    startThread(on: 1) {
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      made.give(loop)
      run(loop)
    }
    loop = made.take()
  }

  var isAsleep: Bool { loop.isWaiting }
  func perform(_ body: @escaping @Sendable () -> Void) { loop.perform(body) }
  func stop() { loop.stop() }

  func after(_ nanoseconds: Int, _ body: @escaping @Sendable () -> Void) {
    loop.perform { [loop] in
      let deadline = SuspendingClock.now.advanced(by: .nanoseconds(nanoseconds))
      loop.add(Timer(deadline: deadline) { _ in body() }, forMode: .default)
    }
  }
}

/// Core Foundation's loop by itself.
final class CoreFoundationSubject: Subject, @unchecked Sendable {
  // Sendable: Core Foundation's functions may be called on any thread.
  let name = "Core Foundation's by itself"
  private let loop: CFRunLoop

  init() {
    struct Given: @unchecked Sendable { let loop: CFRunLoop }
    let made = Handover<Given>()
    startThread(on: 1) {
      guard let loop = CFRunLoopGetCurrent() else { return }
      var context = CFRunLoopSourceContext()
      context.perform = { _ in }
      CFRunLoopAddSource(loop, CFRunLoopSourceCreate(nil, 0, &context), kCFRunLoopDefaultMode)
      made.give(Given(loop: loop))
      CFRunLoopRun()
    }
    loop = made.take().loop
  }

  var isAsleep: Bool { CFRunLoopIsWaiting(loop) }
  func stop() { CFRunLoopStop(loop) }

  func perform(_ body: @escaping @Sendable () -> Void) {
    CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode, body)
    CFRunLoopWakeUp(loop)
  }

  func after(_ nanoseconds: Int, _ body: @escaping @Sendable () -> Void) {
    let date = CFAbsoluteTimeGetCurrent() + Double(nanoseconds) / 1e9
    CFRunLoopAddTimer(
      loop, CFRunLoopTimerCreateWithHandler(nil, date, 0, 0, 0) { _ in body() }, kCFRunLoopDefaultMode)
  }
}

/// GLib's main loop with ours as its guest.
final class GLibHost {
  private let guest: RunLoop.Guest
  private let host: OpaquePointer

  init?(_ guest: RunLoop.Guest) {
    guard let host = chost_create() else { return nil }
    self.guest = guest
    self.host = host
  }

  func run() {
    chost_add_guest(
      host, guest.descriptor, { GLibHost.at($0).guest.timeoutMilliseconds }, { GLibHost.at($0).turn() },
      Unmanaged.passUnretained(self).toOpaque())
    chost_run(host)
    chost_destroy(host)
    guest.invalidate()
  }

  private func turn() { if guest.service() == .stopped { chost_quit(host) } }

  private static func at(_ context: UnsafeMutableRawPointer?) -> GLibHost {
    guard let context else { fatalError("GLib has lost its context") }
    return Unmanaged<GLibHost>.fromOpaque(context).takeUnretainedValue()
  }
}

func allSubjects() -> [any Subject] {
  var subjects: [any Subject] = [
    OurSubject("by itself, on its futex") { $0.runUntilStopped() },
    OurSubject("by itself, in its epoll set") { loop in
      let source = RunLoop.DescriptorSource(descriptor: idlePipe(), events: .readable) { _, _ in }
      do { try loop.add(source, forMode: .default) } catch { fatalError("\(error)") }
      loop.runUntilStopped()
    },
    OurSubject("in Core Foundation's") { loop in
      do { try loop.serveCoreFoundation() } catch { fatalError("\(error)") }
      loop.runUntilStopped()
    },
    CoreFoundationSubject(),
    OurSubject("a guest of poll, by its timeout") { _ in servePoll(signalsDeadlines: false) },
    OurSubject("a guest of poll, by its descriptor") { _ in servePoll(signalsDeadlines: true) },
  ]
  guard chost_library() != nil else { return subjects }
  for signalsDeadlines in [false, true] {
    subjects.append(
      OurSubject("a guest of GLib, by its \(signalsDeadlines ? "descriptor" : "timeout")") { _ in
        do {
          // GLib's default context is shared by all threads, so each thread creates its own.
          chost_use_own_context()
          GLibHost(try RunLoop.Guest(signalsDeadlines: signalsDeadlines))?.run()
        } catch {
          fatalError("\(error)")
        }
      })
  }
  return subjects
}

/// Returns a descriptor that never becomes ready.
func idlePipe() -> Int32 {
  var ends: [Int32] = [0, 0]
  guard pipe(&ends) == 0 else { fatalError("no pipe") }
  return ends[0]
}

func servePoll(signalsDeadlines: Bool) {
  do {
    let guest = try RunLoop.Guest(signalsDeadlines: signalsDeadlines)
    while guest.service() != .stopped {
      var entry = pollfd(fd: guest.descriptor, events: Int16(POLLIN), revents: 0)
      poll(&entry, 1, signalsDeadlines && guest.timeoutMilliseconds != 0 ? -1 : guest.timeoutMilliseconds)
    }
    guest.invalidate()
  } catch {
    fatalError("\(error)")
  }
}
