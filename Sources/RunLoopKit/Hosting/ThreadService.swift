// SPDX-License-Identifier: Apache-2.0

import CRunLoopKit
import CRunLoopSystem
import CoreFoundation
import RunLoopCore

/// Serves the Core Foundation loop of a thread other than the main one automatically, once it has items.
///
/// Used only on that thread.
final class ThreadService: OtherLoopService, @unchecked Sendable {
  // Sendable: used only on the loop's thread.

  private struct KnownMode {
    let name: CFRunLoopMode
    var portSetSearch = PortSetSearch()
  }

  private let runLoop: CFRunLoop
  private var modes: [RunLoopCore.RunLoop.Mode: KnownMode] = [:]

  init(_ runLoop: CFRunLoop) { self.runLoop = runLoop }

  func findHost(for loop: RunLoopCore.RunLoop, in mode: RunLoopCore.RunLoop.Mode) {
    guard !_CFRunLoopFinished(runLoop, modes[mode]?.name ?? mode.coreFoundationMode), !loop.hasExplicitGuest else {
      return
    }
    do {
      try loop.setHost(isAutomatic: true, sparingDescriptors: CoreFoundationHost.spareDescriptors) {
        CoreFoundationHost($0, isAutomatic: true)
      }
    } catch {
      Diagnostic.unservedItems.report(
        "Foundation's run loop of \(loop.threadDescription) has items in the mode \(mode), which are not served while "
          + "RunLoopKit's runs: \(error)")
    }
  }

  func descriptorOfOtherLoop(in mode: RunLoopCore.RunLoop.Mode) -> Int32? {
    var known = modes[mode] ?? KnownMode(name: mode.coreFoundationMode)
    // A mode that Core Foundation's loop does not have is not created for this, because that requires descriptors.
    let number = mode == .default ? known.portSetSearch.number(of: known.name, in: runLoop) : nil
    modes[mode] = known
    return number
  }
}

/// The search for the epoll set in which Core Foundation's loop waits in a mode.
struct PortSetSearch {
  private var found: Int32?
  private var failures = 0

  /// The number of failed searches after which no more are made, because each reads all descriptors of the process.
  private static let mostFailures = 3

  /// Returns the descriptor of the epoll set, or nil if it has not been found.
  ///
  /// Must be called on the loop's thread.
  mutating func number(of name: CFRunLoopMode, in runLoop: CFRunLoop) -> Int32? {
    guard found == nil, failures < Self.mostFailures else { return found }
    found = portSet(of: name, in: runLoop)
    guard found == nil else { return found }
    failures += 1
    if failures == Self.mostFailures {
      Diagnostic.coreFoundation.report(
        "what another thread adds to Core Foundation's run loop of this thread, while RunLoopKit's sleeps, waits until "
          + "that one is woken: the descriptor in which Core Foundation's waits cannot be found")
    }
    return nil
  }
}

/// Returns the epoll set in which Core Foundation's loop waits in a mode, or nil if it cannot be found.
///
/// Must be called on the loop's thread.
private func portSet(of name: CFRunLoopMode, in runLoop: CFRunLoop) -> Int32? {
  guard let number = try? SystemCall.eventCreate.make({ crl_event_create() }) else { return nil }
  let counter = OwnedDescriptor(number)
  // Core Foundation does not expose its epoll set. A descriptor that a temporary source adds to the set identifies it.
  var context = CFRunLoopSourceContext1()
  context.version = 1
  context.info = UnsafeMutableRawPointer(bitPattern: Int(counter.number) + 1)
  context.getPort = { info in Int32(Int(bitPattern: info) - 1) }
  context.perform = { _ in }
  guard let source = context.makeSource() else { return nil }
  CFRunLoopAddSource(runLoop, source, name)
  let found = rlk_epoll_set_with(counter.number)
  CFRunLoopSourceInvalidate(source)
  return found >= 0 ? found : nil
}
