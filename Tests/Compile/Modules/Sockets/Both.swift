// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Socket

func connect() -> Socket {
  RunLoop.main.perform {}
  return Socket()
}
