// SPDX-License-Identifier: Apache-2.0

// The articles' networking code with one more import.
//
// This is AFURLConnectionOperation as printed in the articles, translated line by line from Objective-C: its thread
// with a port in the loop, and the start that hops there. Then the same requests are made with AFNetworking's own
// API. All requests are sent to the example's own server on the loopback interface.
//
//     swift run --package-path Examples ported-networking

import Foundation
import RunLoopSockets
import RunLoopURLConnection

/// AFURLConnectionOperation as printed in the articles.
final class ConnectionOperation: Operation, NSURLConnectionDataDelegate, @unchecked Sendable {
  // Sendable: the lock guards the state; the rest belongs to the network thread.

  private enum State { case ready, executing, finished }

  let request: URLRequest
  var runLoopModes: [RunLoop.Mode] = [.common]
  private(set) var responseData = Data()
  private(set) var error: (any Error)?
  private let lock = NSRecursiveLock()
  private var state = State.ready
  private var connection: NSURLConnection?

  init(request: URLRequest) { self.request = request }

  //     + (void)networkRequestThreadEntryPoint:(id)__unused object {
  //         @autoreleasepool {
  //             [[NSThread currentThread] setName:@"AFNetworking"];
  //             NSRunLoop *runLoop = [NSRunLoop currentRunLoop];
  //             [runLoop addPort:[NSMachPort port] forMode:NSDefaultRunLoopMode];
  //             [runLoop run];
  //         }
  //     }
  static func networkRequestThreadEntryPoint() {
    Thread.current.name = "AFNetworking"
    let runLoop = RunLoop.current
    runLoop.add(Port(), forMode: .default)
    runLoop.run()
  }

  //     + (NSThread *)networkRequestThread {
  //         static NSThread *_networkRequestThread = nil;
  //         static dispatch_once_t oncePredicate;
  //         dispatch_once(&oncePredicate, ^{
  //             _networkRequestThread = [[NSThread alloc] initWithTarget:self
  //                 selector:@selector(networkRequestThreadEntryPoint:) object:nil];
  //             [_networkRequestThread start];
  //         });
  //         return _networkRequestThread;
  //     }
  static let networkRequestThread: Thread = {
    let networkRequestThread = Thread { networkRequestThreadEntryPoint() }
    networkRequestThread.start()
    return networkRequestThread
  }()

  //     - (void)start {
  //         [self.lock lock];
  //         if ([self isCancelled]) {
  //             [self performSelector:@selector(cancelConnection) onThread:[[self class] networkRequestThread]
  //                 withObject:nil waitUntilDone:NO modes:[self.runLoopModes allObjects]];
  //         } else if ([self isReady]) {
  //             self.state = AFOperationExecutingState;
  //             [self performSelector:@selector(operationDidStart) onThread:[[self class] networkRequestThread]
  //                 withObject:nil waitUntilDone:NO modes:[self.runLoopModes allObjects]];
  //         }
  //         [self.lock unlock];
  //     }
  override func start() {
    lock.lock()
    if isCancelled {
      perform { self.cancelConnection() }
    } else if isReady {
      change(to: .executing)
      perform { self.operationDidStart() }
    }
    lock.unlock()
  }

  // performSelector:onThread:withObject:waitUntilDone:modes:
  private func perform(_ block: @escaping @Sendable () -> Void) {
    do {
      try Self.networkRequestThread.perform(inModes: runLoopModes, block)
    } catch {
      fatalError("the network thread never ends: \(error)")
    }
  }

  private func operationDidStart() {
    say("operationDidStart")
    guard !isCancelled, let connection = NSURLConnection(request: request, delegate: self, startImmediately: false)
    else {
      return cancelConnection()
    }
    self.connection = connection
    for mode in runLoopModes { connection.schedule(in: .current, forMode: mode) }
    connection.start()
  }

  private func cancelConnection() {
    say("cancelConnection")
    connection?.cancel()
    error = URLError(.cancelled)
    change(to: .finished)
  }

  func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    say("didReceiveResponse \((response as? HTTPURLResponse)?.statusCode ?? 0)")
  }

  func connection(_ connection: NSURLConnection, didReceive data: Data) {
    say("didReceiveData")
    responseData.append(data)
  }

  func connectionDidFinishLoading(_ connection: NSURLConnection) {
    say("connectionDidFinishLoading")
    change(to: .finished)
  }

  func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
    self.error = error
    change(to: .finished)
  }

  override var isExecuting: Bool { lock.withLock { state == .executing } }
  override var isFinished: Bool { lock.withLock { state == .finished } }
  override var isAsynchronous: Bool { true }

  private func change(to state: State) {
    for key in ["isExecuting", "isFinished"] { willChangeValue(forKey: key) }
    lock.withLock { self.state = state }
    for key in ["isExecuting", "isFinished"] { didChangeValue(forKey: key) }
  }

  private func say(_ step: String) { print("  \(step) on \(Thread.current.name ?? "a thread without a name")") }
}

/// Responds to every request with a small JSON document.
final class Server: Sendable {
  private let thread: ResidentThread
  private let listener: ListeningSocket

  init() throws {
    thread = try ResidentThread(name: "server")
    listener = try ListeningSocket(at: .loopback(port: 0))
    let loop = thread.runLoop
    listener.handler = { _, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = { socket, event in
        guard case .received = event else { return }
        let body = "{\"greeting\": \"hello\"}"
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        _ = try? socket.write(head + body)
      }
      try? loop.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
  }

  var url: URL {
    let text = "http://127.0.0.1:\(listener.address.port ?? 0)/"
    guard let url = URL(string: text) else { fatalError("\(text) is no address") }
    return url
  }
}

/// Runs the main loop until an operation has finished.
func wait(for operation: Operation) {
  while !operation.isFinished { RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)) }
}

let server = try Server()
let queue = OperationQueue()

print("the articles' operation:")
let operation = ConnectionOperation(request: URLRequest(url: server.url))
queue.addOperation(operation)
wait(for: operation)
print("  \(String(decoding: operation.responseData, as: UTF8.self))")

print("one that was cancelled before its start:")
let cancelled = ConnectionOperation(request: URLRequest(url: server.url))
cancelled.cancel()
cancelled.start()
wait(for: cancelled)
print("  \((cancelled.error as? URLError)?.code == .cancelled ? "NSURLErrorCancelled" : "no error")")

print("AFNetworking's own names:")
let manager = AFHTTPRequestOperationManager(baseURL: server.url)
let finished = manager.get(
  "greeting", parameters: ["language": "en"],
  success: { operation, object in
    print("  \((object as? [String: String])?["greeting"] ?? "no greeting") from \(operation.request.url?.query ?? "")")
    RunLoop.main.stop()
  },
  failure: { _, error in
    print("  \(error)")
    RunLoop.main.stop()
  })
withExtendedLifetime(finished) { _ = RunLoop.main.runUntilStopped() }
