// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopSockets
import RunLoopThreads

// MARK: - Sockets requested by libcurl. Nothing here calls libcurl.
extension Attempt {
  func openSocket(_ wanted: clc_wanted_socket) -> Int32 {
    begin()
    if connectDue == .never, limitsConnecting {
      connectDue = loader.entered + Int64(connectMilliseconds) &* 1_000_000
      loader.note(deadline: connectDue)
    }
    do throws(SystemError) {
      let descriptor = try SystemCall.socket.make {
        let number = socket(wanted.family, wanted.type | Int32(SOCK_CLOEXEC.rawValue), wanted.protocol)
        return number < 0 ? -errno : number
      }
      if wanted.family != AF_UNIX { SocketWatch.limitQueue(of: descriptor) }
      opened.append(descriptor)
      loader.noteOpened(descriptor)
      loader.watches[descriptor]?.attempt = self
      loader.watches[descriptor]?.opener = number
      loader.watches[descriptor]?.sharingKey = evaluates ? transfer.settings.sharingKey : nil
      if exchange.address.isTLS || speaksPlainHTTP2 { loader.noteHTTP2IsPossible(descriptor) }
      if speaksPlainHTTP2, !noteHTTP2(descriptor) { return -1 }
      return descriptor
    } catch {
      // libcurl continues with the next address.
      socketFailure = "\(error)"
      return -1
    }
  }

  private func noteHTTP2(_ descriptor: Int32) -> Bool {
    do throws(ThreadError) {
      try loader.notePlainHTTP2(descriptor)
      return true
    } catch {
      fail(HTTP.Error(.cannotConnect, "the thread that looks for floods cannot start: \(error)"))
      opened.removeLast()
      loader.close(descriptor)
      return false
    }
  }
}
