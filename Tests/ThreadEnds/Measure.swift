// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation

/// The places where Core Foundation's own loop calls user code when a thread ends, for comparison with ours.
struct Measure: Sendable {
  let name: String
  let prepare: @Sendable (_ use: @escaping @Sendable () -> Void) -> Void

  static let all = [
    Measure(name: "CF cancel") { use in addSource(witness(use), cancels: true) },
    Measure(name: "CF source") { use in addSource(witness(use), cancels: false) },
    Measure(name: "CF timer") { use in
      var context = CFRunLoopTimerContext()
      context.info = witness(use)
      context.release = release
      let timer = CFRunLoopTimerCreate(nil, CFAbsoluteTimeGetCurrent() + 1000, 1000, 0, 0, { _, _ in }, &context)
      CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
    },
    Measure(name: "CF observer") { use in
      var context = CFRunLoopObserverContext()
      context.info = witness(use)
      context.release = release
      let observer = CFRunLoopObserverCreate(
        nil, CFRunLoopActivity.exit.rawValue, true, 0, { _, _, _ in }, &context)
      CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode)
    },
    Measure(name: "CF threadDictionary") { use in
      Foundation.Thread.current.threadDictionary["witness"] = Witness(use)
    },
  ]
}

private func witness(_ use: @escaping @Sendable () -> Void) -> UnsafeMutableRawPointer {
  Unmanaged.passRetained(Witness(use)).toOpaque()
}

private let release: @convention(c) (UnsafeRawPointer?) -> Void = { info in
  if let info { Unmanaged<Witness>.fromOpaque(info).release() }
}

private func addSource(_ info: UnsafeMutableRawPointer, cancels: Bool) {
  var context = CFRunLoopSourceContext()
  context.info = info
  if cancels {
    context.cancel = { info, _, _ in release(info) }
  } else {
    context.release = release
  }
  let source = CFRunLoopSourceCreate(nil, 0, &context)
  CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode)
}
