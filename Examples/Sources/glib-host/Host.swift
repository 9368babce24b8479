// SPDX-License-Identifier: Apache-2.0

import CHostLoop
import RunLoopCore

/// GLib's main loop, with one of our run loops as its guest; must be used on the main thread.
final class Host {
  private let host: OpaquePointer
  private let guest: RunLoop.Guest
  /// The number of the guest's turns for each result.
  private(set) var turns: [RunLoop.RunResult: Int] = [:]
  private var timeouts: [Timeout] = []

  /// Nil if this was built without GLib.
  init?() throws(RunLoopError) {
    guard let host = chost_create() else { return nil }
    self.host = host
    guest = try RunLoop.Guest()
  }

  /// Runs GLib's loop until our loop is stopped.
  func run() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    chost_add_guest(
      host, guest.descriptor, { context in Host.at(context).guest.timeoutMilliseconds },
      { context in Host.at(context).turn() }, context)
    chost_run(host)
    chost_remove_guest(host)
    guest.invalidate()
    chost_destroy(host)
  }

  /// Calls a body at an interval, by a GLib timeout, until it returns false.
  func every(milliseconds: UInt32, _ body: @escaping () -> Bool) {
    let timeout = Timeout(body)
    timeouts.append(timeout)
    chost_add_timeout(
      host, milliseconds, { context in Timeout.at(context).body() ? 1 : 0 },
      Unmanaged.passUnretained(timeout).toOpaque())
  }

  private func turn() {
    let result = guest.service()
    turns[result, default: 0] += 1
    if result == .stopped { chost_quit(host) }
  }

  private static func at(_ context: UnsafeMutableRawPointer?) -> Host {
    guard let context else { fatalError("GLib has lost its context") }
    return Unmanaged<Host>.fromOpaque(context).takeUnretainedValue()
  }
}

private final class Timeout {
  let body: () -> Bool

  init(_ body: @escaping () -> Bool) {
    self.body = body
  }

  static func at(_ context: UnsafeMutableRawPointer?) -> Timeout {
    guard let context else { fatalError("GLib has lost its context") }
    return Unmanaged<Timeout>.fromOpaque(context).takeUnretainedValue()
  }
}
