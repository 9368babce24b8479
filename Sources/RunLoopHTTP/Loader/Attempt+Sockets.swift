// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopSockets
import RunLoopThreads

// MARK: - Sockets requested by libcurl. Nothing here calls libcurl.
extension Attempt {
  /// The maximum number of unsent bytes that the kernel may queue for a connection.
  ///
  /// By default, a socket accepts megabytes at once, and more when a third of them has been sent. With a slow server
  /// that could take longer than the idle timeout, and the reported progress would be far ahead of the actual one.
  static let mostQueued: Int32 = 128 * 1024

  private static func limitQueue(of descriptor: Int32) {
    var most = mostQueued
    let size = socklen_t(MemoryLayout<Int32>.size)
    // If the limit is not supported, the kernel's default applies.
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
