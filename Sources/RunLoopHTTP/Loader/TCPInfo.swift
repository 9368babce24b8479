// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

struct TCPInfo {
  /// `TCP_CLOSE` and `TCP_CLOSE_WAIT`: the connection is closed, or the peer has ended it.
  static let (closed, closeWait): (UInt8, UInt8) = (7, 8)

  let state: UInt8
  let acknowledged: UInt64
  let received: UInt64

  /// - Returns: nil for other sockets, and if the system does not provide the information.
  init?(_ descriptor: Int32) {
    // Reads `tcpi_bytes_acked` and `tcpi_bytes_received` of Linux's `struct tcp_info`, which the C library's
    // declaration lacks.
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
