// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a client keeps a multiplexer for: a loop, its modes, and whether it delivers cookies.
struct MultiplexerKey: Hashable {
  let loop: ObjectIdentifier
  let modes: [RunLoop.Mode]
  let isForCookies: Bool
}

/// An object, as a weak reference costs more to copy than another.
final class WeakMultiplexer {
  let key: MultiplexerKey
  private(set) weak var source: MultiplexerSource?

  init(_ key: MultiplexerKey, _ source: MultiplexerSource) {
    self.key = key
    self.source = source
  }
}
