// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import Glibc
import RunLoopCore

/// A socket of the library's and the source that watches it.
///
/// The library takes a socket away and adds it again for each request of a kept connection; the source stays, paused, until the
/// socket is closed.
final class SocketWatch {
  let source: RunLoop.DescriptorSource
  /// The number of the attempt that has opened it; zero for none.
  var opener: UInt = 0
  /// Whether the loop has the source.
  var isAdded = false
  /// The socket's own port and the peer's, once they were asked for.
  var ports: Ports?
  /// Whether an answer of HTTP/1 has come on it: between its answers nothing may come.
  var speaksHTTP1 = false
  var speaksHTTP2 = false
  /// Whose bytes come on it, where that is one attempt alone: libcurl reports lines, and a line may come byte by byte.
  weak var attempt: Attempt?

  struct Ports: Hashable {
    let own: Int32
    let peer: Int32
  }

  init(_ source: RunLoop.DescriptorSource) { self.source = source }
}

extension Loader {
  /// A socket was made; it is watched when the library asks for it.
  func noteOpened(_ descriptor: Int32) {
    forget(descriptor)
    let source = RunLoop.DescriptorSource(descriptor: descriptor, events: []) { [weak self] source, events in
      var bits = 0
      if events.contains(.readable) {
        bits |= Int(clc_select_in)
        self?.watches[source.descriptor]?.attempt?.noteActivity()
      }
      if events.contains(.writable) { bits |= Int(clc_select_out) }
      if !events.isDisjoint(with: [.error, .hangUp]) { bits |= Int(clc_select_error) }
      self?.act(source.descriptor, Int32(bits))
    }
    source.pause()
    watches[descriptor] = SocketWatch(source)
  }

  /// The library wants to know of a socket; the reason if that is impossible.
  func watch(_ descriptor: Int32, _ what: Int32) -> RunLoopError? {
    if Int(what) == Int(clc_poll_remove) {
      watches[descriptor]?.source.pause()
      return nil
    }
    // One that the library has made itself, such as its own pair for waking it.
    if watches[descriptor] == nil { noteOpened(descriptor) }
    guard let watch = watches[descriptor] else { return nil }
    var events: RunLoop.DescriptorSource.Events = []
    if Int(what) & Int(clc_poll_in) != 0 { events.insert(.readable) }
    if Int(what) & Int(clc_poll_out) != 0 { events.insert(.writable) }
    do throws(RunLoopError) {
      try watch.source.watch(for: events)
      if !watch.isAdded {
        try loop.add(watch.source, forMode: .common)
        watch.isAdded = true
      }
      return nil
    } catch {
      return error
    }
  }

  func close(_ descriptor: Int32) {
    forget(descriptor)
    _ = Glibc.close(descriptor)
  }

  private func forget(_ descriptor: Int32) {
    guard let watch = watches.removeValue(forKey: descriptor) else { return }
    watch.source.invalidate()
    if let ports = watch.ports, connections[ports] === watch { connections[ports] = nil }
  }

  /// The socket of a connection; nil for one that has no ports.
  ///
  /// - Parameter opened: The sockets that it probably is, if no request was sent on it before.
  /// - Complexity: O(1), and O(n) for the first request on a connection that another transfer has opened.
  func connection(_ ports: SocketWatch.Ports, opened: [Int32]) -> SocketWatch? {
    func note(_ descriptor: Int32) {
      guard let watch = watches[descriptor], watch.ports == nil, let found = Self.ports(of: descriptor) else { return }
      watch.ports = found
      connections[found] = watch
    }
    if connections[ports] == nil { for descriptor in opened { note(descriptor) } }
    if connections[ports] == nil { for descriptor in watches.keys { note(descriptor) } }
    return connections[ports]
  }

  /// Whether a kept connection has bytes that came after the end of the last answer: they would be the next answer.
  ///
  /// On an encrypted connection they may be the end of it, which is as good a reason for another.
  func hasStrayBytes(_ watch: SocketWatch) -> Bool {
    guard watch.speaksHTTP1 else { return false }
    var byte: UInt8 = 0
    return recv(watch.source.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
  }

  /// The ports of a connection; nil for one that has none.
  private static func ports(of descriptor: Int32) -> SocketWatch.Ports? {
    func port(_ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) -> Int32? {
      var address = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      return withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask(descriptor, $0, &length) == 0 }
          ? withUnsafeBytes(of: &pointer.pointee) { bytes in
            guard [AF_INET, AF_INET6].contains(Int32(bytes.load(as: sa_family_t.self))) else { return nil }
            // The port is in the third and fourth byte of either family.
            return Int32(bytes[2]) << 8 | Int32(bytes[3])
          } : nil
      }
    }
    guard let own = port(getsockname), let peer = port(getpeername) else { return nil }
    return SocketWatch.Ports(own: own, peer: peer)
  }
}

// What libcurl calls.

let loaderSocketFunction: clc_socket_function = { easy, descriptor, what, context, _ in
  guard let context else { return 0 }
  let loader = Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue()
  // An answer other than zero would end every transfer.
  if let error = loader.watch(descriptor, what), let easy { loader.fail(easy, error) }
  return 0
}

let loaderTimerFunction: clc_timer_function = { _, milliseconds, context in
  guard let context else { return 0 }
  Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue().libraryWants(milliseconds)
  return 0
}

let loaderCloseFunction: clc_close_socket_function = { context, descriptor in
  guard let context else { return 0 }
  Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue().close(descriptor)
  return 0
}
