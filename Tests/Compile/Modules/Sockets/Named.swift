// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Socket
import class Socket.MainLoop

func connect() -> (MainLoop, Address) {
  RunLoop.main.perform {}
  return (MainLoop(), Address())
}
