// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopSystemEvents

extension ByteStream {
  /// Adds the stream to a mode of a loop, which then calls its handler.
  ///
  /// The two streams of a pair can be in different loops, and each can be in several modes. A stream can be scheduled
  /// before or after it is opened. It waits for events only while it is open.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the stream is closed, and the errors of adding a descriptor source.
  ///
  /// The corresponding Core Foundation functions are `CFReadStreamScheduleWithRunLoop` and
  /// `CFWriteStreamScheduleWithRunLoop`.
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) throws(RunLoopError) { try join(loop, mode) }

  /// Removes the stream from a mode of a loop.
  ///
  /// The corresponding Core Foundation functions are `CFReadStreamUnscheduleFromRunLoop` and
  /// `CFWriteStreamUnscheduleFromRunLoop`.
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    lock.releasing { registrations.leave(loop, mode) }
  }

  private func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    guard lock.lockUnlessParents() else { throw .invalidSource }
    guard state != .closed else {
      lock.unlock()
      throw .invalidSource
    }
    var source: RunLoop.DescriptorSource?
    do throws(RunLoopError) {
      if let channel {
        let entering = registrations.source ?? makeSource(channel)
        source = entering
        try registrations.enter(loop, mode, entering)
      } else {
        registrations.insert(loop, mode)
      }
    } catch {
      lock.unlock()
      throw withExtendedLifetime(source) { error }
    }
    postNews()
    postHandshake()
    // A block posted to a loop that has ended is never run, so post again.
    hasPostedSession = false
    postSession()
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  /// Enters the modes in which the stream was scheduled before it was opened, and records a failure to do so; requires
  /// the lock, but the result must be released without it.
  func enterPlaces(_ channel: ByteChannel) -> RunLoop.DescriptorSource? {
    guard !registrations.all.isEmpty else { return nil }
    let source = makeSource(channel)
    for place in registrations.all {
      do throws(RunLoopError) {
        try registrations.enter(place.loop, place.mode, source)
      } catch {
        // The thread of one loop may have ended. Any other error ends the stream.
        if error != .loopHasEnded { note(.failed(.loop(error))) }
      }
    }
    return source
  }

  private func makeSource(_ channel: ByteChannel) -> RunLoop.DescriptorSource {
    let source = RunLoop.DescriptorSource(
      descriptor: channel.watched.number, events: interest ?? [], carrying: self
    ) { [self] _, events in
      ready(events)
    }
    if interest == nil { source.pause() }
    return source
  }

  /// The events to watch for, or `nil` for none.
  private var interest: RunLoop.DescriptorSource.Events? {
    switch state {
    case .opening: core.openingInterest
    case .open: isTold && !hasUnsent ? nil : isClogged ? .writable : direction
    case .notOpen, .atEnd, .failed, .closed: nil
    }
  }

  /// Requires the lock.
  func updateInterest() {
    guard let source = registrations.source else { return }
    postSession()
    guard source.isPaused ? interest != nil : interest != source.events else { return }
    do {
      try source.watch(for: interest)
    } catch {
      if error != .invalidSource { note(.failed(.loop(error))) }
    }
  }

  /// Sets a final state, which is reported on a loop; requires the lock.
  func note(_ state: Status) {
    self.state = state
    owesNews = true
    postNews()
  }

  /// Requires the lock.
  func postNews() {
    if owesNews || owesOpening { _ = post { [self] in tellNews() } }
  }

  /// Reports the end or the error, once.
  private func tellNews() {
    lock.lock()
    tellOpening()
    guard owesNews else { return lock.unlock() }
    owesNews = false
    switch state {
    case .atEnd: tell(.endEncountered)
    case .failed(let error): tell(.errorOccurred(error))
    case .notOpen, .opening, .open, .closed: break
    }
    lock.unlock()
  }

  /// Requires the lock.
  private func tellOpening() {
    guard owesOpening else { return }
    owesOpening = false
    if state != .closed { tell(.openCompleted) }
  }

  /// Responds to events of the descriptor, on a loop's thread.
  func ready(_ events: RunLoop.DescriptorSource.Events) {
    lock.lock()
    var isOther = false
    switch state {
    case .opening:
      do throws(SocketError) {
        if try core.advance() {
          isOther = core.tls != nil
          registrations.replaceTimer(nil)?.invalidate()
          state = .open
          updateInterest()
          tell(.openCompleted)
        } else {
          startHandshakeTimer()
          updateInterest()
        }
      } catch {
        isOther = core.tls != nil
        registrations.replaceTimer(nil)?.invalidate()
        note(.failed(error))
        updateInterest()
      }
    case .open:
      tellOpening()
      if state == .open, !isTold, core.prepare(direction, channel) {
        isTold = true
        tell(direction == .readable ? .hasBytesAvailable : .canAcceptBytes)
      }
      // Updating after the call-out saves a system call if the handler has read or written.
      updateInterest()
      if events.contains(.error), let channel, channel.kind == .socket { channel.descriptor.dropNotes() }
    case .notOpen, .atEnd, .failed, .closed: break
    }
    lock.unlock()
    if isOther { core.other(than: self)?.handshakeAdvanced() }
  }

  /// Names the handler in records, which need a structure with one closure and nothing else.
  private struct Call { let handler: Handler }

  /// Calls the handler; requires the lock, which is released during the call.
  private func tell(_ event: Event) {
    var body = body
    lock.unlock()
    noteCall(of: body.map { Call(handler: $0.handler) })
    body?.handler(self, event)
    // Release a handler that was replaced in the meantime before taking the lock.
    body = nil
    lock.lock()
  }

  enum Transfer {
    case some(Int)
    case nothing
    case end
  }

  /// Reads or writes once, and records the outcome.
  func transfer(_ body: (ByteChannel) throws(SocketError) -> Transfer) throws(SocketError) -> Int? {
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    switch state {
    case .failed(let error): throw error
    case .atEnd: return 0
    case .open: break
    case .notOpen, .opening, .closed: throw .invalid
    }
    guard let channel else { throw .invalid }
    do throws(SocketError) {
      let transferred = try body(channel)
      isTold = false
      switch transferred {
      case .some(let count):
        updateInterest()
        return count
      case .nothing:
        updateInterest()
        return nil
      case .end:
        note(.atEnd)
        updateInterest()
        return 0
      }
    } catch {
      note(.failed(error))
      updateInterest()
      throw error
    }
  }
}

extension ByteStream: CustomDebugStringConvertible {
  /// The stream's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String {
    lock.ifOwned(else: "<ByteStream>{of the parent process}") {
      "<\(direction == .readable ? "InputByteStream" : "OutputByteStream") "
        + "\(Unmanaged.passUnretained(self).toOpaque())>{status = \(state), descriptor = \(channel?.descriptor.number ?? -1)}"
    }
  }
}

// Describes the stream in reports of what keeps a loop running.
extension ByteStream: CarriedItem {
  package var isAlwaysReady: Bool {
    lock.ifOwned(else: false) { channel?.isAlwaysReady ?? false }
  }
  package var keepAliveKind: KeepAliveKind { .descriptor }
  package var keepAliveCode: UInt64 {
    lock.ifOwned(else: 0) { body.map { ClosureCode.first(of: Call(handler: $0.handler)) } ?? 0 }
  }
  package var keepAliveDetail: String {
    lock.ifOwned(else: "of the parent process") {
      "descriptor \(channel?.descriptor.number ?? -1), "
        + (direction == .readable ? "an input stream" : "an output stream")
    }
  }
}
