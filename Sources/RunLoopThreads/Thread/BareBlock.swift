// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore

/// A block that can be called without holding it.
///
/// Every frame that calls a closure may hold it meanwhile. ``Thread/exit()`` leaves the frames behind, and the closure
/// with all that it has captured would never be released. Called by its words, it belongs to whoever keeps the block and
/// to nobody else.
struct BareBlock: Sendable {
  // Stored in a structure, as generic code would wrap a function that it takes by itself.
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }

  /// A closure as it lies in memory: its function, and what it has captured.
  ///
  /// Whoever has them sees to it that the block lives until the call has returned.
  struct Words {
    fileprivate let function: UnsafeMutableRawPointer?
    fileprivate let context: UnsafeMutableRawPointer?

    func call() {
      ClosureCode.isCalled(function)
      crl_closure_call(function, context)
    }
  }

  var words: Words {
    mutating get {
      withUnsafeBytes(of: &self) { $0.load(as: Words.self) }
    }
  }
}
