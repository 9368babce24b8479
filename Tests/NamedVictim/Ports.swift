// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopMessages
import RunLoopSockets
import RunLoopSystemEvents
import RunLoopThreads
import TestSupport

final class Ports: Sendable {
  private let worker: ResidentThread
  private var loop: RunLoop { worker.runLoop }

  init(on worker: ResidentThread) { self.worker = worker }

  func run() {
    lookup()
    connection()
    stream()
    datagram()
    program()
    let name = "named-victim-\(getpid())"
    let port = receiver(name)
    let remote = sender(name)
    sure(try remote.send(id: 1, receiveTimeout: nil))
    observeEnd(of: remote, port)
  }

  private func lookup() {
    let done = Flag()
    HostResolver.resolve("127.0.0.1", port: 1, on: loop) { _ in done.set() }
    done.wait()
  }

  private func connection() {
    let listener = sure(try ListeningSocket(at: SocketAddress(host: "127.0.0.1", port: 0)))
    sure(try loop.add(listener, forMode: .default))
    let done = Flag()
    let port = listener.address.port ?? 0
    let connection = Socket.connect(toHost: "127.0.0.1", port: port, on: loop) { _ in done.set() }
    done.wait()
    withExtendedLifetime((listener, connection)) {}
  }

  private func stream() {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let input = sure(try InputByteStream(takingOver: ends[0]))
    let done = Flag()
    input.handler = { _, event in if case .hasBytesAvailable = event { done.set() } }
    sure(try input.schedule(in: loop, forMode: .default))
    input.open()
    write(ends[1], "x", 1)
    done.wait()
    input.close()
  }

  private func datagram() {
    let done = Flag()
    let receiver = sure(try DatagramSocket(boundTo: SocketAddress(host: "127.0.0.1", port: 0)) { _, _ in done.set() })
    sure(try loop.add(receiver, forMode: .default))
    let sender = sure(try DatagramSocket(boundTo: SocketAddress(host: "127.0.0.1", port: 0)))
    _ = sure(try sender.send([1], to: receiver.localAddress()))
    done.wait()
    withExtendedLifetime((receiver, sender)) {}
  }

  private func program() {
    let done = Flag()
    let child = sure(try SpawnedProcess("true"))
    let source = ChildProcessSource(child) { _, _ in done.set() }
    sure(try loop.add(source, forMode: .default))
    done.wait()
  }

  private func receiver(_ name: String) -> MessagePort.Local {
    let port = sure(try MessagePort.Local(name: name) { _ in MessagePort.Reply([1]) })
    sure(try loop.add(port, forMode: .default))
    return port
  }

  private func sender(_ name: String) -> MessagePort.Remote { sure(try MessagePort.Remote(name: name)) }

  private func observeEnd(of remote: MessagePort.Remote, _ port: MessagePort.Local) {
    sure(try loop.add(remote, forMode: .default))
    let done = Flag()
    sure(try remote.observeInvalidation { _ in done.set() })
    port.invalidate()
    done.wait()
  }
}
