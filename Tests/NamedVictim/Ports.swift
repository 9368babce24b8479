// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopMessages
import RunLoopSockets
import RunLoopThreads
import TestSupport

final class Ports: Sendable {
  private let worker: ResidentThread
  private var loop: RunLoop { worker.runLoop }

  init(on worker: ResidentThread) { self.worker = worker }

  func run() {
    lookup()
    connection()
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
