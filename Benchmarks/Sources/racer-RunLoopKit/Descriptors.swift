// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore

func w9() {
  let loop = RunLoop.current
  let pairs = Pairs()
  for pair in 0..<Pairs.count {
    let source = RunLoop.DescriptorSource(descriptor: pairs.descriptor(pair), events: .readable) { _, _ in
      if pairs.ready(pair) { loop.stop() }
    }
    watch(source, loop)
  }
  pairs.race(100_000) { loop.runUntilStopped() }
}

func w11() {
  let loop = RunLoop.current
  guard let connections = race_echo_begin() else { return race_check(false, "no connections") }
  for index in 0..<Int(race_connections()) {
    let connection = connections[index]
    let source = RunLoop.DescriptorSource(descriptor: connection, events: .readable) { source, _ in
      guard !race_echo_serve(connection) else { return }
      source.invalidate()
      if race_echo_closed() { loop.stop() }
    }
    watch(source, loop)
  }
  race_echo_go()
  loop.runUntilStopped()
  race_echo_report()
}

private func watch(_ source: RunLoop.DescriptorSource, _ loop: RunLoop) {
  do { try loop.add(source, forMode: .default) } catch { race_check(false, "\(error)") }
}
