// SPDX-License-Identifier: Apache-2.0

import CRace
import RunLoopCore
import RunLoopSockets

func w11() {
  race_set_peer("RunLoopKit (sockets)")
  let loop = RunLoop.current
  guard let connections = race_echo_begin() else { return race_check(false, "no connections") }
  for index in 0..<Int(race_connections()) {
    do {
      let socket = try Socket(takingOver: connections[index], handler: echo)
      try loop.add(socket, forMode: .default)
    } catch { race_check(false, "\(error)") }
  }
  race_echo_go()
  loop.runUntilStopped()
  race_echo_report()
}

private func echo(_ socket: Socket, _ event: Socket.Event) {
  switch event {
  case .received(let bytes):
    do { race_check(try socket.write(bytes), "an answer did not fit") } catch { race_check(false, "\(error)") }
  case .ended: socket.shutDown(.write)
  case .closed: if race_echo_closed() { RunLoop.current.stop() }
  case .connected, .readable, .writable: break
  }
}
