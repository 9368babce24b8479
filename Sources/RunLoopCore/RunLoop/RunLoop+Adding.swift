// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Adding and removing items, from any thread. Adding an item to a mode that already contains it has no effect.

extension RunLoop {
  /// Adds an item to a mode or, for ``Mode/common``, to every current and future common mode.
  ///
  /// A source, port or socket can be in any number of modes of any number of loops; a timer or observer can be in the
  /// modes of only one loop at a time. Once it has been removed from its last mode, it can be added to another loop,
  /// and it is then no longer a common item of the previous loop. A sleeping loop takes the new item into account
  /// immediately. Can be called from any thread.
  ///
  /// - Throws: An error that depends on the item's type: the item is invalid, the loop has ended, or a system resource
  ///   is exhausted. The item has then been added to no further mode.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopAddSource`.
  @inline(never)
  public func add<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) throws(Item.Failure) {
    _ = try item.respond(to: ItemRequest(act: .add, loop: self, mode: mode, site: crl_call_site()))
  }

  /// Adds an item whose addition cannot throw, and returns whether it was added.
  ///
  /// - Returns: `false` if the loop rejects the item and reports the rejection. An invalid item is rejected, as is a
  ///   timer or observer in a mode of another loop, and any item if this loop's thread has ended.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopAddSource`, `CFRunLoopAddTimer` and
  /// `CFRunLoopAddObserver`.
  @discardableResult
  @inline(never)
  public func add<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) -> Bool where Item.Failure == Never {
    item.respond(to: ItemRequest(act: .add, loop: self, mode: mode, site: crl_call_site()))
  }

  /// Removes an item from a mode or, for ``Mode/common``, a common item from every common mode.
  ///
  /// The item stays valid and can be added again, to this loop or another. A descriptor that was found ready before is
  /// no longer served. Can be called from any thread.
  ///
  /// Removing the last item of a mode does not wake a loop that sleeps in it. The run notices that its mode is empty
  /// at its next wake-up or, if the item is removed on the loop's own thread, at the end of the pass. To end such a
  /// run, call ``stop()``. To replace the only item of a mode, add the new one first; the mode is then never empty,
  /// and the run continues even in the middle of a pass.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopRemoveSource`, `CFRunLoopRemoveTimer` and
  /// `CFRunLoopRemoveObserver`.
  public func remove<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) {
    // Only adding an item can throw.
    _ = try? item.respond(to: ItemRequest(act: .remove, loop: self, mode: mode, site: 0))
  }

  /// Returns whether an item is in a mode or, for ``Mode/common``, is one of the common items.
  ///
  /// A timer or observer that is in none of this loop's modes is not one of its common items either. Can be called
  /// from any thread.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopContainsSource`, `CFRunLoopContainsTimer` and
  /// `CFRunLoopContainsObserver`.
  public func contains<Item: RunLoopItem>(_ item: Item, forMode mode: Mode) -> Bool {
    (try? item.respond(to: ItemRequest(act: .contains, loop: self, mode: mode, site: 0))) ?? false
  }

  /// Adds a timer to a mode and returns nothing, as Foundation's method does.
  ///
  /// A rejected timer is reported. Where a `Bool` is expected, the overload that returns one is called instead.
  ///
  /// - Complexity: O(log n) in the number of timers in each mode.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  @inline(never)
  public func add(_ timer: Timer, forMode mode: Mode) {
    _ = add(timer, forMode: mode, from: Origin(site: crl_call_site()))
  }

  /// Adds a port to a mode and returns nothing, as Foundation's method does.
  ///
  /// The loop calls the port's ``Port/schedule(in:forMode:)``, and does not call it again until the port has been
  /// removed from the mode. A port keeps the loop alive and wakes it when a message arrives. The loop retains the port
  /// until it is removed or invalidated. A rejected port is reported.
  ///
  /// The corresponding Foundation method is `add(_:forMode:)`.
  public func add(_ port: Port, forMode mode: Mode) { _ = accept(port, mode) }
}

extension RunLoop {
  /// Adds a timer to a mode, and records `origin` for the instruments.
  @inline(__always)
  package func add(_ timer: Timer, forMode mode: Mode, from origin: Origin) -> Bool {
    // Noted before the timer can fire.
    Origin.note(timer, site: origin.site & ~(1 << 63))
    let isIn = addHere(timer, mode) ?? join(timer, mode)
    tellOfItem(mode)
    return isIn
  }

  /// Adds a timer for a caller that throws its own error; a rejection is counted but not reported.
  ///
  /// Checking `hasEnded` first would not be enough, because the loop may end between the check and the call.
  package func offer(_ timer: Timer, forMode mode: Mode, from origin: Origin = .unknown) -> Bool {
    Origin.note(timer, site: origin.site & ~(1 << 63))
    let isIn = addHere(timer, mode) ?? join(timer, mode, isReported: false)
    tellOfItem(mode)
    return isIn
  }

  /// Adds a source for a caller that throws its own error; a rejection is counted but not reported.
  package func offer(_ source: Source, forMode mode: Mode) -> Bool {
    let isIn = join(source, mode, isReported: false)
    tellOfItem(mode)
    return isIn
  }
}

// How the core's own items respond to item requests.

extension RunLoop.Source: RunLoopItem {
  /// Adds the source to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// The source's `schedule` and `cancel` call-outs are made once for each concrete mode, on the thread that adds or
  /// removes the source. If a call-out for the same mode is still running on another thread, that thread makes the
  /// next one afterwards.
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
  /// Adds the timer to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// - Complexity: O(log n) in the number of timers in each mode.
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
  /// Adds the observer to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// The loop sorts a mode's observers at the first activity after a change. An observer added during an activity is
  /// first called at the next activity. An observer removed during an activity, before its turn, is still called once.
  ///
  /// - Complexity: O(1) for each mode; the sort is O(n log n).
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
  /// Adds the descriptor source to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// A mode's epoll set is created for its first descriptor source and closed when the last one is removed.
  ///
  /// - Throws: ``RunLoopError/cannotWatch(descriptor:_:)`` if the descriptor is not open (`EBADF`), if it does not
  ///   support epoll, like a regular file (`EPERM`), or if no descriptor is available for the set (`EMFILE`,
  ///   `ENFILE`); ``RunLoopError/invalidSource`` or ``RunLoopError/loopHasEnded``.
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
  /// Adds the port to a mode with ``schedule(in:forMode:)``, removes it with ``remove(from:forMode:)``, or returns
  /// whether it was added to the mode.
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
