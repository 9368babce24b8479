// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Socket

func make() -> MainLoop {
  RunLoop.main.perform {}
  return MainLoop()
}
