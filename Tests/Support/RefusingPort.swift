// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A port of 127.0.0.1 on which nothing listens, or can listen, during the lifetime of this object.
///
/// Without the reservation another test could be assigned the port.
package final class RefusingPort: Sendable {
  package let number: UInt16
  private let descriptor: Int32

  package init() {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        bind(descriptor, name, length) == 0 && getsockname(descriptor, name, &length) == 0
      }
    }
    precondition(isBound, "no port: \(errno)")
    self.descriptor = descriptor
    number = UInt16(bigEndian: name.sin_port)
  }

  deinit { close(descriptor) }
}
