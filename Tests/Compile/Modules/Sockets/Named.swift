// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Socket
import class Socket.Socket

func connect() -> (Socket, Address) {
  RunLoop.main.perform {}
  return (Socket(), Address())
}
