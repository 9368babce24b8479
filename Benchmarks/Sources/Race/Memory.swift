// SPDX-License-Identifier: Apache-2.0

import CRace

/// W12: the memory of each of the `count` objects that `make` creates.
public func raceMemory(timers count: Int64, _ make: (Int64) -> Void) {
  let count = race_sized(count)
  let before = race_heap()
  make(count)
  race_report("bytes per timer", Double(race_heap() - before) / Double(count), "B")
}

/// W12: the memory of each of 200 idle loops that `start` starts.
public func raceMemory(loops start: () -> Void) {
  let count = 200.0
  start()
  race_settle()
  let (resident, heap, descriptors) = (race_resident(), race_heap(), race_descriptors())
  for _ in 0..<Int(count) { start() }
  race_settle()
  race_report("bytes in memory per idle loop and its thread", Double(race_resident() - resident) / count, "B")
  race_report("bytes of heap per idle loop", Double(race_heap() - heap) / count, "B")
  race_report("descriptors per loop", Double(race_descriptors() - descriptors) / count, "")
}
