// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopSockets
import RunLoopThreads

// The sockets that the library asks for. Nothing here calls the library.
extension Attempt {
  /// How many bytes of a body the system may queue that the connection has no room for.
  ///
  /// A socket takes megabytes at once, and the next bytes when a third of them has gone: to a slow server that would be
  /// longer than the idle timeout, and what was sent would be far from what has left.
  static let mostQueued: Int32 = 128 * 1024

  private static func limitQueue(of descriptor: Int32) {
    var most = mostQueued
    let size = socklen_t(MemoryLayout<Int32>.size)
    // Where it cannot be limited, it is as long as the system likes.
    _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &most, size)
  }

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
      if wanted.family != AF_UNIX { Self.limitQueue(of: descriptor) }
      opened.append(descriptor)
      loader.noteOpened(descriptor)
      loader.watches[descriptor]?.attempt = self
      loader.watches[descriptor]?.opener = number
      loader.watches[descriptor]?.sharingKey = evaluates ? transfer.settings.sharingKey : nil
      if exchange.address.isTLS || speaksPlainHTTP2 { loader.noteHTTP2IsPossible(descriptor) }
      if speaksPlainHTTP2, !noteHTTP2(descriptor) { return -1 }
      return descriptor
    } catch {
      // The library goes on with the next address.
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
