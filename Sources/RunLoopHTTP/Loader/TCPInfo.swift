// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// What the system says of a connection of TCP.
struct TCPInfo {
  /// `TCP_CLOSE` and `TCP_CLOSE_WAIT`: it is over, or the peer has ended it.
  static let (closed, closeWait): (UInt8, UInt8) = (7, 8)

  let state: UInt8
  /// How many bytes the peer has acknowledged.
  let acknowledged: UInt64
  let received: UInt64

  /// - Returns: nil for another connection, and for a system that does not say.
  init?(_ descriptor: Int32) {
    // `tcpi_bytes_acked` and `tcpi_bytes_received` of Linux' `struct tcp_info`, which the library's declaration does
    // not have.
    let size = 136
    let found: (UInt8, UInt64, UInt64)? = withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { buffer in
      var length = socklen_t(size)
      guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, buffer.baseAddress, &length) == 0, length >= size
      else { return nil }
      return (
        buffer[0], buffer.load(fromByteOffset: 120, as: UInt64.self), buffer.load(fromByteOffset: 128, as: UInt64.self)
      )
    }
    guard let found else { return nil }
    (state, acknowledged, received) = found
  }
}
