// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Which items a loop serves, from any thread. An item that is in a mode already is left as it is.

extension RunLoop {
  /// Adds an item to a mode, or, for ``Mode/common``, to every common mode there is and will be.
  ///
  /// A source, port or socket may be in any number of modes of any number of loops; a timer or observer is in the modes
  /// of one loop at a time. One that has left its last mode can be added to another loop, and then is no longer among
  /// the common items of the loop before. A sleeping loop takes the item into account at once. Can be called from any
  /// thread.
  ///
  /// - Throws: What the item's type says: that it is over, that the loop has ended, or what the system lacks. The item
  ///   is in no further mode then.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddSource`.
  @inline(never)
  public func add<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) throws(Item.Failure) {
    _ = try item.respond(to: ItemRequest(act: .add, loop: self, mode: mode, site: crl_call_site()))
  }

  /// Adds an item whose addition throws nothing, and returns whether it was added.
  ///
  /// - Returns: False if the loop rejects the item, which is reported: it is invalid, in a mode of another loop where
  ///   it may be in one alone, or this loop's thread has ended.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopAddSource`, `CFRunLoopAddTimer` and
  /// `CFRunLoopAddObserver`.
  @discardableResult
  @inline(never)
  public func add<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) -> Bool where Item.Failure == Never {
    item.respond(to: ItemRequest(act: .add, loop: self, mode: mode, site: crl_call_site()))
  }

  /// Removes an item from a mode, or, for ``Mode/common``, a common item from every common mode.
  ///
  /// It stays valid and can be added again, here or elsewhere; a descriptor that was found ready is no longer
  /// served. Can be called from any thread.
  ///
  /// Removing the last item of a mode does not wake a loop that sleeps in it. The run finds that its mode is empty at
  /// its next wake-up; if the item leaves on the loop's own thread, at the end of the pass. To end such a run, call
  /// ``stop()``. To replace the only item of a mode, add the new one first: then the mode is empty at no time, and the
  /// run continues even if it is in the middle of a pass.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopRemoveSource`, `CFRunLoopRemoveTimer` and
  /// `CFRunLoopRemoveObserver`.
  public func remove<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) {
    // Only an addition throws.
    _ = try? item.respond(to: ItemRequest(act: .remove, loop: self, mode: mode, site: 0))
  }

  /// Whether an item is in a mode, or, for ``Mode/common``, among the common items.
  ///
  /// A timer or observer that is in none of this loop's modes is not among its common items either. Can be called from
  /// any thread.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopContainsSource`, `CFRunLoopContainsTimer` and
  /// `CFRunLoopContainsObserver`.
  public func contains<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) -> Bool {
    (try? item.respond(to: ItemRequest(act: .contains, loop: self, mode: mode, site: 0))) ?? false
  }

  /// Adds a timer to a mode and returns nothing, as Foundation's method does.
  ///
  /// A rejected timer is reported. Where a `Bool` is expected, the other method is called, which returns it.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  @inline(never)
  public func add(_ timer: Timer, forMode mode: Mode) {
    _ = add(timer, forMode: mode, from: Origin(site: crl_call_site()))
  }

  /// Adds a port to a mode and returns nothing, as Foundation's method does.
  ///
  /// The loop calls the port's ``Port/schedule(in:forMode:)``, once until the port is removed from the mode. A port
  /// keeps the loop alive and wakes it when a message arrives. The loop holds the port until it is removed or
  /// invalidated. A rejected port is reported.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  public func add(_ port: Port, forMode mode: Mode) { _ = accept(port, mode) }
}

extension RunLoop {
  /// Adds a timer to a mode, and records `origin` for the instruments.
  @inline(__always)
  package func add(_ timer: Timer, forMode mode: Mode, from origin: Origin) -> Bool {
    // Before it may fire.
    Origin.note(timer, site: origin.site & ~(1 << 63))
    let isIn = addHere(timer, mode) ?? join(timer, mode)
    tellOfItem(mode)
    return isIn
  }

  /// Adds a timer for a caller that has an error of its own: a rejection is counted and not reported.
  ///
  /// A check before the call would not do, because the loop may end between the two.
  package func offer(_ timer: Timer, forMode mode: Mode, from origin: Origin = .unknown) -> Bool {
    Origin.note(timer, site: origin.site & ~(1 << 63))
    let isIn = addHere(timer, mode) ?? join(timer, mode, isReported: false)
    tellOfItem(mode)
    return isIn
  }

  /// Adds a source for a caller that has an error of its own: a rejection is counted and not reported.
  package func offer(_ source: Source, forMode mode: Mode) -> Bool {
    let isIn = join(source, mode, isReported: false)
    tellOfItem(mode)
    return isIn
  }
}

// What the core's own items do when they are asked.

extension RunLoop.Source: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// The source's `schedule` and `cancel` call-outs are made on the thread that adds or removes it, once for each
  /// concrete mode; but if a call-out for the same mode is still running on another thread, that thread makes the next
  /// one afterwards.
  public func respond(to request: RunLoop.ItemRequest) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .contains: return loop.holds(self, mode)
    case .remove: loop.part(self, mode)
    case .add:
      let isIn = loop.join(self, mode)
      loop.tellOfItem(mode)
      return isIn
    }
    return true
  }
}

extension Timer: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode; O(log n) in the timers of each mode.
  public func respond(to request: RunLoop.ItemRequest) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .contains: return loop.holds(self, mode)
    case .remove: if !loop.removeHere(self, mode) { loop.part(self, mode) }
    case .add: return loop.add(self, forMode: mode, from: Origin(site: request.site))
    }
    return true
  }
}

extension RunLoop.Observer: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode; O(1) for each mode.
  ///
  /// The loop puts the observers of a mode in order, in O(n log n), at the next stage after a change. One
  /// that was added during a stage is called from the next stage on; one that was removed during a stage that has yet
  /// to call it is still called once.
  public func respond(to request: RunLoop.ItemRequest) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .contains: return loop.holds(self, mode)
    case .remove: loop.part(self, mode)
    case .add: return loop.join(self, mode)
    }
    return true
  }
}

extension RunLoop.DescriptorSource: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// The first descriptor source of a mode makes an epoll set for it, and the last to leave closes it.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is not open (`EBADF`) or cannot be waited
  ///   for, as a regular file cannot (`EPERM`), or if the process has no descriptor left for the set (`EMFILE`,
  ///   `ENFILE`); ``RunLoopError/invalidSource``, ``RunLoopError/loopHasEnded``.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .contains: return loop.holds(self, mode)
    case .remove: loop.part(self, mode)
    case .add:
      if let rejection = loop.attempt(self, mode) {
        _ = loop.reject(rejection, isReported: false)
        switch rejection {
        case .system(let error): throw .cannotWatch(descriptor: descriptor, error)
        case .endedLoop: throw loop.endedError
        case .invalidItem, .boundItem, .noMode: throw .invalidSource
        }
      }
      loop.tellOfItem(mode)
    }
    return true
  }
}

extension Port: RunLoopItem {
  /// Enters or leaves a mode of a loop by ``schedule(in:forMode:)`` or ``remove(from:forMode:)``, or says whether it
  /// was added to the mode.
  public final func respond(to request: RunLoop.ItemRequest) -> Bool {
    let (loop, mode) = (request.loop, request.mode)
    switch request.act {
    case .contains: return loop.holds(self, mode) || loop.table.withLock { $0.comesWithSources(self, mode) }
    case .remove: if loop.disown(self, mode) || loop.holds(self, mode) { remove(from: loop, forMode: mode) }
    case .add: return loop.accept(self, mode)
    }
    return true
  }
}
