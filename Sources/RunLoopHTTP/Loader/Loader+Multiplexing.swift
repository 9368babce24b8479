// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// Which hosts take several requests on a connection at once.
extension Loader {
  /// Notes what an origin's last connection was.
  ///
  /// The library tries the next of those that wait for a connection when the one before has failed. A host that does
  /// not answer would have them time out one after the other: they are started over, and wait for no other.
  func note(_ address: WebAddress, multiplexes: Bool) {
    if let lastNoted, lastNoted.address === address, lastNoted.multiplexes == multiplexes { return }
    let origin = address.origin
    lastNoted = (address, multiplexes)
    guard multiplexing[origin] != multiplexes else { return }
    if multiplexing.count >= 1024 { multiplexing = [:] }
    multiplexing[origin] = multiplexes
    guard !multiplexes else { return }
    let waiting = attempts.filter { $0.waitsForMultiplexing && $0.exchange.address.origin == origin }
    guard !waiting.isEmpty else { return }
    later { [self] in
      for attempt in waiting.sorted(by: { $0.number < $1.number })
      where attempt.waitsForMultiplexing && attempt.place != nil { startOver(attempt) }
    }
  }

  /// Takes an attempt that has not begun out of the library's queue, and puts it there again to wait for no other.
  private func startOver(_ attempt: Attempt) {
    attempt.waitsForMultiplexing = false
    var code: Int32 = 0
    inside {
      _ = clc_multi_remove(multi, attempt.easy)
      _ = attempt.handle.set(waitsForMultiplexing: false)
      code = clc_multi_add(multi, attempt.easy)
    }
    guard code != 0 else { return }
    end(attempt, HTTP.Error(.cannotConnect, "libcurl takes no more: \(String(cString: clc_multi_text(code)))"))
  }
}
