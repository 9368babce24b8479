// SPDX-License-Identifier: Apache-2.0

import CRace
import CoreFoundation
import Foundation
import Race

/// A descriptor in a run loop, as a `CFSocket` with a read callback.
private final class Watch {
  private let ready: () -> Void
  private(set) var socket: CFSocket?

  init(_ descriptor: Int32, _ ready: @escaping () -> Void) {
    self.ready = ready
    var context = CFSocketContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    socket = CFSocketCreateWithNative(
      nil, descriptor, CFSocketCallBackType.readCallBack.rawValue,
      { _, _, _, _, info in
        if let info { Unmanaged<Watch>.fromOpaque(info).takeUnretainedValue().ready() }
      }, &context)
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFSocketCreateRunLoopSource(nil, socket, 0), defaultMode)
  }
}

func w9() {
  let loop: CFRunLoop = CFRunLoopGetCurrent()
  let pairs = Pairs()
  let watches = (0..<Pairs.count).map { pair in
    Watch(pairs.descriptor(pair)) { if pairs.ready(pair) { CFRunLoopStop(loop) } }
  }
  pairs.race(10_000) { CFRunLoopRun() }
  withExtendedLifetime(watches) {}
}

func w11() {
  let loop: CFRunLoop = CFRunLoopGetCurrent()
  guard let connections = race_echo_begin() else { return race_check(false, "no connections") }
  var watches: [Watch] = []
  for index in 0..<Int(race_connections()) {
    let connection = connections[index]
    watches.append(
      Watch(connection) {
        guard !race_echo_serve(connection) else { return }
        CFSocketInvalidate(watches[index].socket)
        if race_echo_closed() { CFRunLoopStop(loop) }
      })
  }
  race_echo_go()
  CFRunLoopRun()
  race_echo_report()
}
