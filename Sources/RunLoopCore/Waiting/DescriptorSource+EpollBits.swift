// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

// Conversion between a descriptor's events and the bits of `epoll`.
extension RunLoop.DescriptorSource.Events {
  @inline(__always)
  init(epollBits: UInt32) {
    self = []
    if epollBits & EPOLLIN.rawValue != 0 { insert(.readable) }
    if epollBits & EPOLLOUT.rawValue != 0 { insert(.writable) }
    if epollBits & EPOLLHUP.rawValue != 0 { insert(.hangUp) }
    if epollBits & EPOLLERR.rawValue != 0 { insert(.error) }
  }

  @inline(__always)
  var epollBits: UInt32 {
    var bits: UInt32 = 0
    if contains(.readable) { bits |= EPOLLIN.rawValue }
    if contains(.writable) { bits |= EPOLLOUT.rawValue }
    if contains(.hangUp) { bits |= EPOLLRDHUP.rawValue }
    return bits
  }
}
