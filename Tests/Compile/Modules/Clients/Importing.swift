// SPDX-License-Identifier: Apache-2.0

// A client of the library that also imports RunLoopKit.
import Foundation
import Pulse
import RunLoopKit

func start(_ pulse: Pulse) -> Timer? {
  pulse.start(on: RunLoop.main, in: RunLoop.Mode.default)
  return pulse.timer
}
