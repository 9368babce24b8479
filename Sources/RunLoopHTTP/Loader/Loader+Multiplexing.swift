// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// MARK: - Hosts that support multiplexing
extension Loader {
  /// Records whether an origin's last connection supports multiplexing.
  ///
  /// When a connection fails, libcurl retries it for the next waiting transfer. With an unresponsive host, the
  /// transfers would time out one after another, so they are started over and no longer wait for each other.
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

  /// Removes an attempt that has not begun from libcurl's queue and adds it again without waiting for another one.
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
