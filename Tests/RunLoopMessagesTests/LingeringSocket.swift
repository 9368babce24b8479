// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import TestSupport

/// A socket whose last close takes an hour, unless its other end is reset.
///
/// Its peer reads nothing, it has more to send than fits in the buffers, and `SO_LINGER` makes `close` wait for that.
final class LingeringSocket {
  private var peer: Int32
  private var mine: Int32

  init() throws(SystemError) {
    let listener = try Self.checked("socket", socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    _ = try Self.checked("bind", Self.with(&address) { bind(listener, $0, $1) })
    _ = try Self.checked("listen", listen(listener, 1))
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &size) }
    }
    let sender = try Self.checked("socket", socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    mine = sender
    _ = try Self.checked("connect", Self.with(&address) { connect(sender, $0, $1) })
    peer = try Self.checked("accept", accept(listener, nil, nil))
    for descriptor in [mine, peer] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    let bytes = [UInt8](repeating: 1, count: 1 << 16)
    while send(mine, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
    var linger = linger(l_onoff: 1, l_linger: 3600)
    _ = setsockopt(mine, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
  }

  deinit {
    release()
    if mine >= 0 { close(mine) }
  }

  /// The descriptor to pass in a message.
  var number: Int32 { mine }

  /// Closes this copy of the socket, which must not be the last.
  func letGo() {
    close(mine)
    mine = -1
  }

  /// Resets the connection, so that a lingering close returns.
  ///
  /// Dissolving the peer's association sends the reset, even while a child that another test has just forked holds
  /// copies of both ends and is closing one of them.
  func release() {
    guard peer >= 0 else { return }
    var nowhere = sockaddr_in()
    nowhere.sin_family = sa_family_t(AF_UNSPEC)
    _ = Self.with(&nowhere) { connect(peer, $0, $1) }
    close(peer)
    peer = -1
  }

  private static func checked(_ call: String, _ answer: Int32) throws(SystemError) -> Int32 {
    guard answer >= 0 else { throw SystemError(call: call, number: errno) }
    return answer
  }

  private static func with(
    _ address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
