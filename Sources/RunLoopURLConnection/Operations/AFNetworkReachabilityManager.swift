// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import Foundation
import RunLoopCore

/// The kind of network that the system's routes lead to.
public enum AFNetworkReachabilityStatus: Int, Sendable {
  /// Unknown, because the manager is not monitoring or the process has no descriptor left.
  case unknown = -1
  /// There is no route to other networks.
  case notReachable = 0
  /// The routes lead through a mobile network.
  case reachableViaWWAN = 1
  /// There is a route through another network, which need not be wireless.
  case reachableViaWiFi = 2
}

/// Monitors whether the system has a route to other networks.
///
/// The kernel reports changes of interfaces, addresses and routes through a netlink socket, which is a version 1
/// source of the main loop in the common modes. A route says nothing about a particular server; to find out whether a
/// server responds, send it a request.
///
/// This is the class of the same name in AFNetworking 2, for the network as a whole; there are no managers for a
/// domain or an address. Its methods can be called from any thread.
open class AFNetworkReachabilityManager: @unchecked Sendable {
  // Sendable: the lock guards the mutable state.

  /// The sources of change notifications and of the current status.
  struct System: Sendable {
    /// Opens a descriptor that is readable after a change; nil if that is not possible.
    var open: @Sendable () -> OwnedDescriptor?
    var status: @Sendable () -> AFNetworkReachabilityStatus
    var loop = RunLoopCore.RunLoop.main
    var queue = DispatchQueue.main
  }

  private static let common = AFNetworkReachabilityManager()

  private let system: System
  private let lock = Lock()
  /// Held while the routes are checked and the result is stored and delivered, so that no older result replaces it.
  private let looking = Lock()
  private var status = AFNetworkReachabilityStatus.unknown
  private var block: (@Sendable (AFNetworkReachabilityStatus) -> Void)?
  private var watch: Watch?

  private struct Watch {
    let descriptor: OwnedDescriptor
    let source: RunLoopCore.RunLoop.DescriptorSource
  }

  /// Returns the manager shared by the whole program.
  public class func shared() -> AFNetworkReachabilityManager { common }

  /// Creates a manager that is not monitoring.
  public convenience init() {
    self.init(System(open: NetworkRoutes.open, status: NetworkRoutes.status))
  }

  init(_ system: System) { self.system = system }

  deinit { watch?.source.invalidate() }

  /// The most recent status; ``AFNetworkReachabilityStatus/unknown`` before ``startMonitoring()``.
  open var networkReachabilityStatus: AFNetworkReachabilityStatus { lock.withLock { status } }
  /// Whether there is a route to other networks.
  open var isReachable: Bool { isReachableViaWWAN || isReachableViaWiFi }
  /// Whether the routes lead through a mobile network.
  open var isReachableViaWWAN: Bool { networkReachabilityStatus == .reachableViaWWAN }
  /// Whether there is a route through another network.
  open var isReachableViaWiFi: Bool { networkReachabilityStatus == .reachableViaWiFi }

  /// Sets a block to call on the main queue with the status when monitoring begins and on each change; nil for none.
  open func setReachabilityStatusChange(_ block: (@Sendable (AFNetworkReachabilityStatus) -> Void)?) {
    var replaced = block
    // The old block is released outside the lock.
    lock.withLock { swap(&self.block, &replaced) }
  }

  /// Starts monitoring, and reports the status.
  ///
  /// If no descriptor is available, the status is reported once, and changes are not.
  open func startMonitoring() {
    stopMonitoring()
    if let descriptor = system.open() {
      let source = RunLoopCore.RunLoop.DescriptorSource(descriptor: descriptor.number, events: .readable) {
        [weak self] source, _ in
        // The handler retains the descriptor, which stays open until it returns even if another thread stops
        // monitoring.
        self?.noteChange(descriptor, source)
      }
      lock.withLock { watch = Watch(descriptor: descriptor, source: source) }
      do { try system.loop.add(source, forMode: .common) } catch { stopMonitoring() }
    }
    look(isFirst: true)
  }

  /// Stops monitoring and leaves the status unchanged.
  open func stopMonitoring() {
    let old = lock.withLock {
      defer { watch = nil }
      return watch
    }
    guard let old else { return }
    // The descriptor is closed after its source has been invalidated.
    withExtendedLifetime(old) { old.source.invalidate() }
  }

  /// Returns a description of the status, in English.
  open func localizedNetworkReachabilityStatusString() -> String {
    switch networkReachabilityStatus {
    case .unknown: "Unknown"
    case .notReachable: "Not Reachable"
    case .reachableViaWWAN: "Reachable via WWAN"
    case .reachableViaWiFi: "Reachable via WiFi"
    }
  }

  /// Called by the source when the descriptor is readable.
  private func noteChange(_ descriptor: OwnedDescriptor, _ source: RunLoopCore.RunLoop.DescriptorSource) {
    // A source that was replaced is not drained, so it would fire repeatedly.
    guard lock.withLock({ watch?.source === source }) else { return source.invalidate() }
    NetworkRoutes.drain(descriptor.number)
    look(isFirst: false)
  }

  private func look(isFirst: Bool) {
    looking.lock()
    defer { looking.unlock() }
    let found = system.status()
    let (isNews, block) = lock.withLock {
      defer { status = found }
      return (isFirst || status != found, self.block)
    }
    guard isNews else { return }
    system.queue.async { [self] in
      block?(found)
      NotificationCenter.default.post(
        name: .AFNetworkingReachabilityDidChange, object: self,
        userInfo: [AFNetworkingReachabilityNotificationStatusItem: found.rawValue])
    }
  }
}

/// The `userInfo` key for the raw value of the status.
public let AFNetworkingReachabilityNotificationStatusItem = "AFNetworkingReachabilityNotificationStatusItem"

extension Notification.Name {
  /// Posted when the status of a manager, the notification's object, has changed.
  ///
  /// It is posted on the main queue, after the manager's block was called.
  public static let AFNetworkingReachabilityDidChange = Notification.Name(
    "com.alamofire.networking.reachability.change")
}
