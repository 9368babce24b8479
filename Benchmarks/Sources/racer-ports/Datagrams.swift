// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore
import RunLoopSockets

private let rounds = 20
private let window: Int32 = 16

/// Our server and the floor serve the same client alternately; the median of the parts is reported.
func m3() {
  var ports: [Int32] = [0, 0]
  let (ours, bare) = (race_udp_socket(&ports[0]), race_udp_socket(&ports[1]))
  onThread {
    do {
      let socket = try DatagramSocket(takingOver: ours, handler: echo)
      try RunLoop.current.add(socket, forMode: .default)
      RunLoop.current.runUntilStopped()
    } catch { race_check(false, "\(error)") }
  }
  onThread { race_udp_serve(bare) }
  let part = race_scaled(400_000, Int64(rounds) * 50) / Int64(rounds)
  var rates: [[Double]] = [[], []]
  for round in 0...rounds {
    // The order alternates as well.
    for index in round % 2 == 0 ? [0, 1] : [1, 0] {
      let time = race_udp_ask(ports[index], part, window)
      // The first round is a warm-up.
      if round > 0 { rates[index].append(Double(part) * 1e9 / Double(time)) }
    }
  }
  for (peer, rates) in zip(["RunLoopKit", "floor"], rates) {
    race_set_peer(peer)
    race_report("requests per second", rates.sorted()[rounds / 2], "1/s")
  }
}

private func echo(_ socket: DatagramSocket, _ event: DatagramSocket.Event) {
  guard case .received(let bytes, let envelope) = event else { return race_check(false, "no datagram") }
  do {
    race_check(try socket.send(bytes, to: envelope.sender), "an answer did not fit")
  } catch { race_check(false, "\(error)") }
}
