// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopThreads

/// The sockets by their descriptors, which are small numbers.
struct WatchTable {
  private var places: [SocketWatch?] = []

  subscript(descriptor: Int32) -> SocketWatch? {
    get { places.indices.contains(Int(descriptor)) ? places[Int(descriptor)] : nil }
    set {
      let index = Int(descriptor)
      guard index >= 0 else { return }
      if index >= places.count { places.append(contentsOf: repeatElement(nil, count: index + 1 - places.count)) }
      places[index] = newValue
    }
  }

  /// All of them.
  ///
  /// - Complexity: O(n) in the largest descriptor.
  var all: [SocketWatch] { places.compactMap { $0 } }
}

extension Loader {
  /// A socket was made; it is watched when the library asks for it.
  func noteOpened(_ descriptor: Int32, isOfConnection: Bool = true) {
    forget(descriptor)
    // It is released when the socket is closed, or the loader is.
    let source = RunLoop.DescriptorSource(descriptor: descriptor, events: []) { [self] source, events in
      happened(source.descriptor, events)
    }
    source.pause()
    watches[descriptor] = SocketWatch(source, isOfConnection: isOfConnection)
  }

  private func happened(_ descriptor: Int32, _ events: RunLoop.DescriptorSource.Events) {
    guard let watch = watches[descriptor] else { return }
    // What has come stays in the socket until the library asks for it.
    guard watch.isWanted else { return watch.source.pause() }
    var bits = 0
    if events.contains(.readable) {
      bits |= Int(clc_select_in)
      watch.attempt?.noteActivity()
    }
    if events.contains(.writable) { bits |= Int(clc_select_out) }
    if !events.isDisjoint(with: [.error, .hangUp]) { bits |= Int(clc_select_error) }
    act(descriptor, Int32(bits))
    // The library may have closed it, and its number may be another's by now.
    if events.contains(.readable), watches[descriptor] === watch { lookForFlood(watch) }
  }

  /// Ends the request of a connection on which more and more comes that the library throws away and reports nothing of,
  /// such as what may stand behind the length of a chunk.
  private func lookForFlood(_ watch: SocketWatch) {
    guard let attempt = watch.attempt, watch.flood == nil, watch.isFlooded() else { return }
    later { [self] in end(attempt, Attempt.flooded) }
  }

  /// The library wants to know of a socket; the reason if that is impossible.
  func watch(_ descriptor: Int32, _ what: Int32) -> RunLoopError? {
    if Int(what) == Int(clc_poll_remove) {
      watches[descriptor]?.rest()
      return nil
    }
    // One that the library has made itself, such as its own pair for waking it.
    if watches[descriptor] == nil { noteOpened(descriptor, isOfConnection: false) }
    guard let watch = watches[descriptor] else { return nil }
    var events: RunLoop.DescriptorSource.Events = []
    if Int(what) & Int(clc_poll_in) != 0 { events.insert(.readable) }
    if Int(what) & Int(clc_poll_out) != 0 { events.insert(.writable) }
    watch.isWanted = true
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
    watches[descriptor]?.noteClosing()
    forget(descriptor)
    _ = RunLoopLibC.close(descriptor)
  }

  /// A socket of a connection that speaks HTTP/2 from its beginning, without encryption: what comes on it before an
  /// answer is no sign of one.
  ///
  /// - Throws: What starting the thread of the guard throws: without it a server could keep the loader indefinitely.
  func notePlainHTTP2(_ descriptor: Int32) throws(ThreadError) {
    let known = floodGuard ?? FloodGuard()
    let flood = try known.add(descriptor)
    floodGuard = known
    watches[descriptor]?.speaksHTTP2 = true
    watches[descriptor]?.attempt = nil
    watches[descriptor]?.flood = flood
  }

  private func forget(_ descriptor: Int32) {
    guard let watch = watches[descriptor] else { return }
    watches[descriptor] = nil
    // Its number may be another's by now.
    if watch.hadPeerEnded == nil { watch.hadPeerEnded = false }
    if watch.flood != nil { floodGuard?.remove(descriptor) }
    watch.source.invalidate()
    guard let ends = watch.ends else { return }
    if connections[ends] === watch { connections[ends] = nil }
    let slot = Int(ends.own.port) % Self.lateSize
    if lately[slot] === watch { lately[slot] = nil }
  }

  /// The socket of a connection.
  ///
  /// - Parameter opened: The sockets that it probably is, if no request was sent on it before.
  /// - Complexity: O(1), and O(n) for the first request on a connection that another transfer has opened.
  func connection(_ said: SocketWatch.Said, opened: [Int32]) -> SocketWatch? {
    guard let port = UInt16(exactly: said.ownPort) else { return nil }
    let slot = Int(port) % Self.lateSize
    if let known = lately[slot], known.isSaid(said) { return known }
    guard let ends = SocketWatch.Ends(own: said.own, said.ownPort, peer: said.peer, said.peerPort),
      let found = connection(ends, opened: opened)
    else { return nil }
    found.note(said)
    lately[slot] = found
    return found
  }

  func connection(_ ends: SocketWatch.Ends, opened: [Int32]) -> SocketWatch? {
    func note(_ descriptor: Int32) {
      guard let watch = watches[descriptor], watch.ends == nil, let found = SocketWatch.Ends(of: descriptor) else {
        return
      }
      watch.ends = found
      connections[found] = watch
    }
    if connections[ends] == nil { for descriptor in opened { note(descriptor) } }
    if connections[ends] == nil { for watch in watches.all { note(watch.source.descriptor) } }
    return connections[ends]
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
