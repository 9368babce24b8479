// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

@Suite("NSURLConnection on its caller's loop")
struct NSURLConnectionTests {
  @Test("a connection adds two sources to the default mode, and removes them at its end")
  func sources() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let (before, during, after, log, threads, own) = await elsewhere {
      let recorder = Recorder()
      let before = networkSources(of: .current)
      let connection = NSURLConnection(request: server.request(), delegate: recorder)
      let during = networkSources(of: .current)
      recorder.run()
      withExtendedLifetime(connection) {}
      return (
        before, during, networkSources(of: .current), recorder.log.text, recorder.threads.value, RunLoop.callingThreadID
      )
    }
    #expect(before == [])
    #expect(during == ["CookieSource", "MultiplexerSource"])
    #expect(after == [])
    #expect(log == "response 200 data finish")
    #expect(threads == [own])
  }

  @Test("events that arrive while the loop runs in another mode wait, and are delivered together")
  func modes() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let logs = await elsewhere {
      let recorder = Recorder()
      guard let connection = NSURLConnection(request: server.request(), delegate: recorder) else { return ["none"] }
      waitUntil { connection.connection.hasReceivedEnd }
      let source = RunLoop.Source {}
      RunLoop.current.add(source, forMode: .tracking)
      source.signal()
      RunLoop.current.run(mode: .tracking, for: .zero)
      let tracking = recorder.log.text
      RunLoop.current.run(mode: .default, for: .zero)
      return [tracking, recorder.log.text]
    }
    #expect(logs == ["", "response 200 data finish"])
  }

  @Test("a connection can be scheduled in other modes and on another loop, and unscheduled")
  func scheduling() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let thread = try ResidentThread(name: "delegate")
    let id = try await thread.run { RunLoop.callingThreadID }
    let recorder = Recorder()
    await elsewhere {
      guard let connection = NSURLConnection(request: server.request(), delegate: recorder, startImmediately: false)
      else { return }
      connection.schedule(in: .current, forMode: .default)
      connection.schedule(in: thread.runLoop, forMode: .common)
      connection.unschedule(from: .current, forMode: .default)
      connection.start()
      #expect(networkSources(of: .current) == [])
      recorder.ended.wait()
    }
    #expect(recorder.log.text == "response 200 data finish")
    #expect(recorder.threads.value == [id])
    // The end is reported before the sources are removed, so the thread is asked after that call-out.
    #expect(try await thread.run { networkSources(of: .current) } == [])
  }

  @Test("events wait while the connection is unscheduled")
  func rescheduling() async throws {
    let server = try LyingServer { $0.answer("hello") }
    await elsewhere {
      let recorder = Recorder()
      guard let connection = NSURLConnection(request: server.request(), delegate: recorder) else { return }
      connection.unschedule(from: .current, forMode: .default)
      waitUntil { connection.connection.hasReceivedEnd }
      #expect(RunLoop.current.run(mode: .default, for: .zero) == .finished)
      #expect(recorder.log.text == "")
      connection.schedule(in: .current, forMode: .tracking)
      recorder.run(.tracking)
      #expect(recorder.log.text == "response 200 data finish")
    }
  }

  @Test("a queue calls the delegate serially and in order, without a running loop")
  func queue() async throws {
    let server = try LyingServer { $0.answer(pattern(3_000_000)) }
    let recorder = Recorder()
    let (inside, most) = (Counter(), Box(0))
    recorder.onData = {
      most.update { $0 = max($0, inside.add()) }
      inside.add(-1)
    }
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 4
    let connection = NSURLConnection(request: server.request(), delegate: recorder, startImmediately: false)
    connection?.setDelegateQueue(queue)
    connection?.start()
    await elsewhere { recorder.ended.wait() }
    #expect(recorder.body.value == pattern(3_000_000))
    #expect(recorder.log.entries.first == "response 200" && recorder.log.entries.last == "finish")
    #expect(most.value == 1)
  }

  @Test("a body that is not consumed is received up to a limit, and arrives completely later")
  func backPressure() async throws {
    let server = try LyingServer { $0.answer(pattern(20_000_000)) }
    await elsewhere {
      let recorder = Recorder()
      guard let connection = NSURLConnection(request: server.request(), delegate: recorder) else { return }
      waitUntil { connection.connection.waitingByteCount >= ConnectionMail.highWater }
      #expect(connection.connection.waitingByteCount < 2 * ConnectionMail.highWater)
      #expect(!connection.connection.hasReceivedEnd)
      recorder.run()
      #expect(recorder.body.value == pattern(20_000_000))
      #expect(recorder.log.entries.last == "finish")
    }
  }

  @Test("a cancelled connection calls nothing more, and the server sees it disconnect")
  func cancelling() async throws {
    let server = try LyingServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
    }
    await elsewhere {
      let recorder = Recorder()
      let connection = Box<NSURLConnection?>(nil)
      recorder.onData = { connection.value?.cancel() }
      connection.value = NSURLConnection(request: server.request(), delegate: recorder)
      recorder.run { recorder.log.entries.contains("data") }
      waitUntil { server.ended.value == 1 }
      #expect(networkSources(of: .current) == [])
      #expect(recorder.log.text == "response 200 data")
      // A second cancellation and a late start have no effect.
      connection.value?.cancel()
      connection.value?.start()
      #expect(networkSources(of: .current) == [])
    }
  }

  @Test("a connection cancelled with pending reports does not delay the next on the same loop")
  func cancelledWithMail() async throws {
    let server = try LyingServer { $0.answer("hello") }
    await elsewhere {
      let recorder = Recorder()
      guard let first = NSURLConnection(request: server.request(), delegate: Recorder()),
        let second = NSURLConnection(request: server.request(), delegate: recorder, startImmediately: false)
      else { return }
      // Both use the same source, which is in the loop while one of them runs.
      second.schedule(in: .current, forMode: .default)
      waitUntil { first.connection.hasReceivedEnd }
      first.cancel()
      second.start()
      recorder.run()
      #expect(recorder.log.text == "response 200 data finish")
    }
  }

  @Test("a connection retains itself and its delegate from its start to its end only")
  func lifetime() async throws {
    let hold = Latch()
    let server = try LyingServer { exchange in
      hold.wait()
      exchange.answer("hello")
    }
    await elsewhere {
      weak var idle: NSURLConnection?
      weak var idleDelegate: Recorder?
      do {
        let recorder = Recorder()
        let connection = NSURLConnection(request: server.request(), delegate: recorder, startImmediately: false)
        (idle, idleDelegate) = (connection, recorder)
      }
      #expect(idle == nil && idleDelegate == nil)
      weak var running: NSURLConnection?
      weak var delegate: Recorder?
      let (log, ended) = {
        let recorder = Recorder()
        let connection = NSURLConnection(request: server.request(), delegate: recorder)
        (running, delegate) = (connection, recorder)
        return (recorder.log, recorder.ended)
      }()
      #expect(running != nil && delegate != nil)
      hold.open()
      while !ended.isOpen { RunLoop.current.run(mode: .default, for: .seconds(300), returnAfterSourceHandled: true) }
      #expect(log.text == "response 200 data finish")
      // The loader may be about to release its last reference.
      waitUntil { running == nil && delegate == nil }
    }
  }

  @Test("if the thread of its loop has ended, the loader makes the calls")
  func endedLoop() async throws {
    let hold = Latch()
    let server = try LyingServer { exchange in
      hold.wait()
      exchange.answer("hello")
    }
    let recorder = Recorder()
    let (own, loop) = await elsewhere {
      _ = NSURLConnection(request: server.request(), delegate: recorder)
      return (RunLoop.callingThreadID, RunLoop.current)
    }
    // If the thread has not ended yet, pending calls are made on it when it ends.
    await elsewhere { waitUntil { loop.hasEnded } }
    hold.open()
    await elsewhere { recorder.ended.wait() }
    #expect(recorder.log.text == "response 200 data finish")
    #expect(recorder.threads.value.count == 1 && !recorder.threads.value.contains(own))
  }

  @Test("the queue calls a request's block once, with a response or an error")
  func asynchronous() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/cut" { return exchange.close() }
      exchange.answer("hello", "X-Field: value")
    }
    let queue = OperationQueue()
    let answer = await withCheckedContinuation { continuation in
      NSURLConnection.sendAsynchronousRequest(server.request(), queue: queue) { response, data, error in
        let field = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Field") ?? "none"
        continuation.resume(returning: "\(field) \(String(decoding: data ?? Data(), as: UTF8.self)) \(error == nil)")
      }
    }
    #expect(answer == "value hello true")
    let code = await withCheckedContinuation { continuation in
      NSURLConnection.sendAsynchronousRequest(server.request("/cut"), queue: queue) { _, data, error in
        continuation.resume(returning: data == nil ? (error as? URLError)?.code : nil)
      }
    }
    #expect(code == .networkConnectionLost)
  }

  @Test("a synchronous request returns the body and the response, or throws")
  func synchronous() async throws {
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/moved": exchange.answer("", status: "302 Found", "Location: /there")
      default: exchange.answer("at \(exchange.path)")
      }
    }
    try await elsewhere {
      Result {
        var response: URLResponse?
        let data = try NSURLConnection.sendSynchronousRequest(server.request("/moved"), returning: &response)
        #expect(String(decoding: data, as: UTF8.self) == "at /there")
        #expect(response?.url?.path == "/there")
        #expect(networkSources(of: .current) == [])
        let error = #expect(throws: URLError.self) {
          try NSURLConnection.sendSynchronousRequest(
            URLRequest(url: URL(string: "ftp://127.0.0.1/")!), returning: nil)
        }
        #expect(error?.code == .unsupportedURL)
      }
    }.get()
  }

  @Test("a request without a URL cannot be created, and only http and https can be handled")
  func addresses() async throws {
    var request = URLRequest(url: URL(string: "http://127.0.0.1/")!)
    #expect(NSURLConnection.canHandle(request))
    request.url = URL(string: "file:///etc/hostname")
    #expect(!NSURLConnection.canHandle(request))
    request.url = nil
    #expect(!NSURLConnection.canHandle(request))
    #expect(NSURLConnection(request: request, delegate: nil) == nil)
  }
}
