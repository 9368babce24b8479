// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import Synchronization

/// Reports to the service manager that the process's run loops are responsive, as long as they are.
///
/// systemd kills and restarts a service with `WatchdogSec=` that does not report in time. A report from a timer covers
/// at most one loop, and a report from a separate thread covers only that thread. The thread of this watchdog checks
/// all loops, and reports while none of them has been in a call-out for half of the time limit.
///
/// ```swift
/// // Nil where no service manager waits for anything: the program runs as ever.
/// let watchdog = ServiceWatchdog()
/// ```
///
/// It works until the object is released.
///
/// Because the service manager expects regular reports, its thread wakes twice per time limit even while all loops
/// sleep. The corresponding function of libsystemd is `sd_notify` with `WATCHDOG=1`.
public final class ServiceWatchdog: Sendable {
  private let core: WatchdogCore

  /// Starts reporting to the service manager named by `NOTIFY_SOCKET` and `WATCHDOG_USEC`.
  ///
  /// Returns nil if these are not set or are meant for another process, or if no thread can be started. Can be called
  /// from any thread.
  ///
  /// - Parameter loops: The loops to check, which the watchdog retains. The default is `nil`, which means all loops of
  ///   the process.
  public convenience init?(loops: [RunLoop]? = nil) {
    let variable = Environment.value
    if let process = variable("WATCHDOG_PID"), process != "\(getpid())" { return nil }
    guard let socket = variable("NOTIFY_SOCKET"), let time = variable("WATCHDOG_USEC").flatMap({ Int64($0) }) else {
      return nil
    }
    self.init(socket: socket, within: .microseconds(time), loops: loops)
  }

  /// Starts reporting to a service manager.
  ///
  /// - Parameters:
  ///   - socket: The path of its datagram socket. A leading `@` denotes an abstract name.
  ///   - limit: The time limit of the service manager.
  ///   - loops: The loops to check, or nil for all loops of the process.
  package init?(socket: String, within limit: Duration, loops: [RunLoop]? = nil) {
    let nanoseconds = min(.max / 4, Int64(saturating: limit))
    guard nanoseconds >= 1_000_000, let link = NotifySocket(socket) else { return nil }
    core = WatchdogCore(link, half: nanoseconds / 2, loops: loops)
    guard core.start() else { return nil }
  }

  /// Stops reporting.
  deinit { core.stop() }
}

/// The state and body of the watchdog's thread.
private final class WatchdogCore: Sendable {
  private let link: NotifySocket
  private let half: Int64
  private let loops: [RunLoop]?
  private let holder = Instruments.hold(.watch)
  private let stopped = Atomic<UInt32>(0)

  init(_ link: NotifySocket, half: Int64, loops: [RunLoop]?) {
    (self.link, self.half, self.loops) = (link, half, loops)
  }

  /// Starts the thread; if that fails, releases the level and returns false.
  func start() -> Bool {
    // Installs the handlers for forks.
    _ = ForkGeneration.current
    let context = Unmanaged.passRetained(self)
    let answer = crl_thread_start(
      { context in
        if let context { Unmanaged<WatchdogCore>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context.toOpaque())
    guard answer != 0 else { return true }
    context.release()
    holder.release()
    return false
  }

  func stop() {
    holder.release()
    stopped.store(1, ordering: .sequentiallyConsistent)
    stopped.futexWake(.max)
  }

  private func run() {
    // Not while the last reference is released, which may run the program's code.
    crl_fork_prevent()
    defer { crl_fork_allow() }
    crl_thread_set_kernel_name("runloop-alive")
    var scout: HangScout?
    var nextWord = crl_monotonic_nanoseconds()
    while stopped.load(ordering: .sequentiallyConsistent) == 0 {
      let now = crl_monotonic_nanoseconds()
      if scout == nil { scout = makeScout() }
      _ = scout?.look(at: now)
      if now >= nextWord {
        // After a hang, the report is sent late. If the socket is full, sending is retried soon.
        if scout?.lasting.isEmpty ?? true, link.send("WATCHDOG=1") { nextWord = now + half }
      }
      // While all loops sleep, nothing needs to be checked until the next report.
      let isQuiet = scout?.isQuiet ?? true
      let wake = nextWord <= now || !isQuiet ? now + half / 8 : nextWord
      stopped.futexWaitAllowingForks(until: wake)
    }
  }

  private func makeScout() -> HangScout? {
    guard let faces = OwnFaces() else { return nil }
    let addresses = loops?.map { UInt64(UInt(bitPattern: Unmanaged.passUnretained($0).toOpaque())) }
    return HangScout(
      process: getpid(), faces: faces, settings: HangJudge.Settings(threshold: half), samples: false
    ) { _, face in addresses.map { $0.contains(face.loop) } ?? true }
  }
}

/// The socket of a service manager, which can be used from any thread.
private final class NotifySocket: Sendable {
  private let descriptor: Int32
  private let address: [UInt8]

  /// Fails if the path is invalid or too long.
  init?(_ path: String) {
    let bytes = Array(path.utf8)
    guard let first = bytes.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "@"), bytes.count < 108 else {
      return nil
    }
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    address = first == UInt8(ascii: "@") ? [0] + bytes.dropFirst() : bytes
  }

  deinit { close(descriptor) }

  /// Sends a message and returns whether that succeeded.
  func send(_ text: String) -> Bool {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: address) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + address.count)
    let bytes = Array(text.utf8)
    return withUnsafePointer(to: &name) { name in
      name.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        // A failure is ignored, because without a receiver no service manager is waiting.
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        return sendto(descriptor, bytes, bytes.count, flags, name, length) == bytes.count
      }
    }
  }
}
