// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC
import RunLoopCore
import RunLoopThreads

/// A table of sockets indexed by descriptor, as descriptors are small numbers.
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

  /// All sockets in the table.
  ///
  /// - Complexity: O(n), where n is the largest descriptor.
  var all: [SocketWatch] { places.compactMap { $0 } }
}

extension Loader {
  /// Records a new socket, which is watched once libcurl asks for it.
  func noteOpened(_ descriptor: Int32, isOfConnection: Bool = true) {
    forget(descriptor)
    // The reference cycle is broken when the socket or the loader is closed.
    let source = RunLoop.DescriptorSource(descriptor: descriptor, events: []) { [self] source, events in
      happened(source.descriptor, events)
    }
    source.pause()
    watches[descriptor] = SocketWatch(source, isOfConnection: isOfConnection)
  }

  private func happened(_ descriptor: Int32, _ events: RunLoop.DescriptorSource.Events) {
    guard let watch = watches[descriptor] else { return }
    // Received data stays in the socket until libcurl asks for it.
    guard watch.isWanted else { return watch.source.pause() }
    var bits = 0
    if events.contains(.readable) {
      bits |= Int(clc_select_in)
      watch.attempt?.noteActivity()
    }
    if events.contains(.writable) { bits |= Int(clc_select_out) }
    if !events.isDisjoint(with: [.error, .hangUp]) { bits |= Int(clc_select_error) }
    act(descriptor, Int32(bits))
    // libcurl may have closed the socket, and its descriptor may have been reused.
    if events.contains(.readable), watches[descriptor] === watch { lookForFlood(watch) }
  }

  /// Ends the request on a connection that keeps receiving data which libcurl discards without a report, such as chunk
  /// extensions.
  private func lookForFlood(_ watch: SocketWatch) {
    guard let attempt = watch.attempt, watch.flood == nil, watch.isFlooded() else { return }
    later { [self] in end(attempt, Attempt.flooded) }
  }

  /// Watches a socket for libcurl, or returns the error if that is not possible.
  func watch(_ descriptor: Int32, _ what: Int32) -> RunLoopError? {
    if Int(what) == Int(clc_poll_remove) {
      watches[descriptor]?.rest()
      return nil
    }
    // A socket that libcurl created itself, such as its wakeup pair.
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

  /// Makes the kernel hold back what is written to a connection until libcurl returns, so that the headers of a request
  /// and the beginning of its body are sent together.
  ///
  /// A server that responds to the headers alone may reset the HTTP/2 stream after its response, because it does not
  /// want the body. libcurl before 8.0 discards a response if the reset has arrived when it reads the response.
  func holdBack(_ watch: SocketWatch) {
    guard !holdingBack.contains(where: { $0 === watch }) else { return }
    holdingBack.append(watch)
    watch.setHoldsBack(true)
  }

  func sendHeldBack() {
    for watch in holdingBack where watches[watch.source.descriptor] === watch { watch.setHoldsBack(false) }
    holdingBack.removeAll(keepingCapacity: true)
  }

  /// Marks a socket as plaintext HTTP/2 from the start, where data that arrives before a response does not indicate
  /// one.
  ///
  /// - Throws: The error of starting the guard's thread. Without it, a server could keep the loader busy indefinitely.
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
    // The descriptor may have been reused.
    if watch.hadPeerEnded == nil { watch.hadPeerEnded = false }
    if watch.flood != nil { floodGuard?.remove(descriptor) }
    watch.source.invalidate()
    guard let ends = watch.ends else { return }
    if connections[ends] === watch { connections[ends] = nil }
    let slot = Int(ends.own.port) % Self.lateSize
    if lately[slot] === watch { lately[slot] = nil }
  }

  /// Returns the socket of a connection.
  ///
  /// - Parameter opened: The sockets it is likely to be if no request was sent on it before.
  /// - Complexity: O(1), or O(n) for the first request on a connection that another transfer has opened.
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

// MARK: - Callbacks for libcurl

let loaderSocketFunction: clc_socket_function = { easy, descriptor, what, context, _ in
  guard let context else { return 0 }
  let loader = Unmanaged<Loader>.fromOpaque(context).takeUnretainedValue()
  // A nonzero result would end every transfer.
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
