// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The key of a multiplexer: its loop, its modes, and whether it delivers cookies.
struct MultiplexerKey: Hashable {
  let loop: ObjectIdentifier
  let modes: [RunLoop.Mode]
  let isForCookies: Bool
}

/// A box around a weak reference, because weak references are expensive to copy.
final class WeakMultiplexer {
  let key: MultiplexerKey
  private(set) weak var source: MultiplexerSource?

  init(_ key: MultiplexerKey, _ source: MultiplexerSource) {
    self.key = key
    self.source = source
  }
}
