// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Glibc
import RunLoopCore
import RunLoopLibuv
import RunLoopThreads
import TestSupport
import Testing

/// A libuv loop on a test's thread.
private struct UVLoop: @unchecked Sendable {
  // Sendable: used by one thread.
  typealias Pointer = UnsafeMutableRawPointer

  let pointer: Pointer

  init() {
    let size: @convention(c) () -> Int = UVLoop.function("uv_loop_size")
    let make: @convention(c) (Pointer) -> Int32 = UVLoop.function("uv_loop_init")
    pointer = .allocate(byteCount: size(), alignment: 16)
    precondition(make(pointer) == 0)
  }

  /// Runs until no handle is active, or once; returns whether handles are still active.
  @discardableResult
  func run(once: Bool = false, waits: Bool = true) -> Bool {
    let run: @convention(c) (Pointer, Int32) -> Int32 = UVLoop.function("uv_run")
    return run(pointer, once ? (waits ? 1 : 2) : 0) != 0
  }

  func stop() {
    let stop: @convention(c) (Pointer) -> Void = UVLoop.function("uv_stop")
    stop(pointer)
  }

  /// Closes the loop, which must have no handles left.
  func close() -> Bool {
    let close: @convention(c) (Pointer) -> Int32 = UVLoop.function("uv_loop_close")
    defer { pointer.deallocate() }
    return close(pointer) == 0
  }

  private static func function<Function>(_ name: String) -> Function {
    guard let library = dlopen("libuv.so.1", RTLD_NOW), let found = dlsym(library, name) else {
      fatalError("libuv has no \(name)")
    }
    return unsafeBitCast(found, to: Function.self)
  }
}

@Suite("A run loop in a libuv loop", .timeLimit(.minutes(5)), .enabled(if: dlopen("libuv.so.1", RTLD_NOW) != nil))
struct LibuvHostTests {
  @Test("everything that a loop serves is served while libuv waits, until the host is detached")
  func everything() {
    let log = Log()
    let hasEnded = Box(false)
    SourceRig.onThread { loop in
      do {
        let uv = UVLoop()
        let host = try LibuvHost.attach(to: uv.pointer)
        #expect(loop.faceReading.host == CRL_HOST_LIBUV)
        let pipe = try RawPipe()
        try loop.add(
          RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
            pipe.read()
            log.write("descriptor")
            host.detach()
          }, forMode: .default)
        let poster = SourceRig.start {
          waitUntil { loop.isWaiting }
          loop.perform {
            log.write("block")
            loop.schedule(in: .milliseconds(2)) { _ in
              log.write("timer")
              pipe.write()
            }
          }
        }
        uv.run()
        poster.join()
        hasEnded.value = uv.close()
      } catch {
        log.write("\(error)")
      }
    }
    #expect(log.text == "block timer descriptor")
    #expect(hasEnded.value)
  }

  @Test("a host that does not keep libuv's loop alive lets it end, and a stop is reported")
  func ends() {
    let log = Log()
    SourceRig.onThread { loop in
      do {
        let uv = UVLoop()
        let host = try LibuvHost.attach(to: uv.pointer, keepsAlive: false)
        loop.schedule(in: .seconds(1000)) { _ in }
        log.write(uv.run() ? "goes on" : "ends")
        do throws(LibuvHostError) { try LibuvHost.attach(to: uv.pointer) } catch { log.write("\(error)") }
        host.detach()
        uv.run()
        let next = try LibuvHost.attach(to: uv.pointer) {
          log.write("stop")
          uv.stop()
        }
        loop.perform { loop.stop() }
        log.write(uv.run() ? "goes on" : "ends")
        next.detach()
        uv.run()
        log.write("\(uv.close())")
      } catch {
        log.write("\(error)")
      }
    }
    #expect(log.text == "ends the run loop is served in a loop of libuv's already stop goes on true")
  }

  @Test("libuv waits until the run loop has something to do")
  func waits() {
    let turns = Box(0)
    SourceRig.onThread { loop in
      let uv = UVLoop()
      guard let host = try? LibuvHost.attach(to: uv.pointer) else { return }
      for _ in 0..<4 { uv.run(once: true, waits: false) }
      let hasFired = Box(false)
      loop.schedule(in: .milliseconds(30)) { _ in hasFired.value = true }
      while !hasFired.value {
        uv.run(once: true)
        turns.update { $0 += 1 }
      }
      host.detach()
      uv.run()
      _ = uv.close()
    }
    #expect((1...3).contains(turns.value))
  }
}
