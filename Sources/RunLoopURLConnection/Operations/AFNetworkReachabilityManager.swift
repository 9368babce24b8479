// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import Foundation
import RunLoopCore

/// What the system's routes lead to.
public enum AFNetworkReachabilityStatus: Int, Sendable {
  /// Not known: the manager does not monitor, or the system has no descriptor left.
  case unknown = -1
  /// There is no route to other networks.
  case notReachable = 0
  /// The routes lead through a mobile network.
  case reachableViaWWAN = 1
  /// There is a route through another network, which need not be wireless.
  case reachableViaWiFi = 2
}

/// Reports whether the system has a route to other networks, and when that changes.
///
/// The kernel reports changes of interfaces, addresses and routes through a netlink socket, which is a source of
/// version 1 of the main loop in the common modes. A route says nothing about a server: to know whether one answers,
/// ask it.
///
/// It is AFNetworking 2's class of this name, for the network as a whole; there are no managers for a domain or an
/// address. Its functions can be called from any thread.
open class AFNetworkReachabilityManager: @unchecked Sendable {
  // Sendable: the lock guards what changes.

  /// What tells the manager of changes, and what it looks at then.
  struct System: Sendable {
    /// A descriptor that is readable after a change; nil if there can be none.
    var open: @Sendable () -> OwnedDescriptor?
    var status: @Sendable () -> AFNetworkReachabilityStatus
    var loop = RunLoopCore.RunLoop.main
    var queue = DispatchQueue.main
  }

  private static let common = AFNetworkReachabilityManager()

  private let system: System
  private let lock = Lock()
  /// Held from the look at the routes until its result is stored and handed over, so that no older one replaces it.
  private let looking = Lock()
  private var status = AFNetworkReachabilityStatus.unknown
  private var block: (@Sendable (AFNetworkReachabilityStatus) -> Void)?
  private var watch: Watch?

  /// The socket and its source.
  private struct Watch {
    let descriptor: OwnedDescriptor
    let source: RunLoopCore.RunLoop.DescriptorSource
  }

  /// The manager of the whole program.
  public class func shared() -> AFNetworkReachabilityManager { common }

  /// Makes a manager, which does not monitor.
  public convenience init() {
    self.init(System(open: NetworkRoutes.open, status: NetworkRoutes.status))
  }

  init(_ system: System) { self.system = system }

  deinit { watch?.source.invalidate() }

  /// The status that was found last; ``AFNetworkReachabilityStatus/unknown`` before ``startMonitoring()``.
  open var networkReachabilityStatus: AFNetworkReachabilityStatus { lock.withLock { status } }
  /// Whether there is a route to other networks.
  open var isReachable: Bool { isReachableViaWWAN || isReachableViaWiFi }
  /// Whether the routes lead through a mobile network.
  open var isReachableViaWWAN: Bool { networkReachabilityStatus == .reachableViaWWAN }
  /// Whether there is a route through another network.
  open var isReachableViaWiFi: Bool { networkReachabilityStatus == .reachableViaWiFi }

  /// Lets the main queue call a block with the status when monitoring begins, and at each change; nil for none.
  open func setReachabilityStatusChange(_ block: (@Sendable (AFNetworkReachabilityStatus) -> Void)?) {
    var replaced = block
    // What was there is released outside the lock.
    lock.withLock { swap(&self.block, &replaced) }
  }

  /// Begins to monitor, and reports the status.
  ///
  /// If the system has no descriptor for that, the status is reported once, and changes are not.
  open func startMonitoring() {
    stopMonitoring()
    if let descriptor = system.open() {
      let source = RunLoopCore.RunLoop.DescriptorSource(descriptor: descriptor.number, events: .readable) {
        [weak self] source, _ in
        // The handler holds the descriptor, which stays open until it returns, whatever another thread stops meanwhile.
        self?.noteChange(descriptor, source)
      }
      lock.withLock { watch = Watch(descriptor: descriptor, source: source) }
      do { try system.loop.add(source, forMode: .common) } catch { stopMonitoring() }
    }
    look(isFirst: true)
  }

  /// Monitors no more; the status stays as it is.
  open func stopMonitoring() {
    let old = lock.withLock {
      defer { watch = nil }
      return watch
    }
    guard let old else { return }
    // The descriptor is closed after its source was invalidated.
    withExtendedLifetime(old) { old.source.invalidate() }
  }

  /// A text for the status, in English.
  open func localizedNetworkReachabilityStatusString() -> String {
    switch networkReachabilityStatus {
    case .unknown: "Unknown"
    case .notReachable: "Not Reachable"
    case .reachableViaWWAN: "Reachable via WWAN"
    case .reachableViaWiFi: "Reachable via WiFi"
    }
  }

  /// The descriptor is readable; its source has been called.
  private func noteChange(_ descriptor: OwnedDescriptor, _ source: RunLoopCore.RunLoop.DescriptorSource) {
    // A watch that was replaced is not drained, and would be called again and again.
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

/// The status's number, in the `userInfo` of a notification.
public let AFNetworkingReachabilityNotificationStatusItem = "AFNetworkingReachabilityNotificationStatusItem"

extension Notification.Name {
  /// The status of a manager, the notification's object, has changed.
  ///
  /// Posted on the main queue, after the manager's block was called.
  public static let AFNetworkingReachabilityDidChange = Notification.Name(
    "com.alamofire.networking.reachability.change")
}
