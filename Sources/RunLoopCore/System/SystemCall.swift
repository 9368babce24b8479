// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc

/// The system calls that the package makes, by name, so that a test can make each of them fail.
package enum SystemCall: String, Sendable, CaseIterable {
  case epollCreate = "epoll_create1"
  case epollControl = "epoll_ctl"
  case epollWait = "epoll_wait"
  case epollWaitNanoseconds = "epoll_pwait2"
  case eventCreate = "eventfd"
  case eventWrite = "write"
  case eventRead = "read"
  case futexWait = "futex"
  case futexWake = "futex (wake)"
  case timerCreate = "timerfd_create"
  case timerSet = "timerfd_settime"
  case socket
  case socketPair = "socketpair"
  case socketOption = "setsockopt"
  case socketOptionRead = "getsockopt"
  case socketName = "getsockname"
  case peerName = "getpeername"
  case lookUp = "getaddrinfo"
  case threadCreate = "pthread_create"
  case bind
  case listen
  case connect
  case accept = "accept4"
  case shutDown = "shutdown"
  case sendMessage = "sendmsg"
  case receiveMessage = "recvmsg"
  case streamRead = "recv"
  case streamWrite = "send"
  case datagramReceive = "recvfrom"
  case datagramSend = "sendto"
  case pipe = "pipe2"
  case pipeRead = "read (pipe)"
  case signalAction = "sigaction"
  case processDescriptor = "pidfd_open"
  case processWait = "waitid"
  case processSignal = "pidfd_send_signal"
  case processSpawn = "posix_spawn"
  case descriptorFlags = "fcntl"
  case watchCreate = "inotify_init1"
  case watchAdd = "inotify_add_watch"
  case watchRemove = "inotify_rm_watch"
  case watchRead = "read (inotify)"
  case directoryOpen = "opendir"
  case directoryRead = "readdir"
  case makeDirectory = "mkdir"
  case unlink
  case fileStatus = "stat"
  case openFile = "open"
  case lockFile = "flock"
  case changeMode = "chmod"
  case messagePoll = "ppoll"
  case memoryCreate = "memfd_create"
  case memoryWrite = "write (memfd)"
  case memoryControl = "fcntl (seals)"
  case memoryRead = "pread"
  case memoryAllocate = "malloc"
  case messagePeek = "recvmsg (MSG_PEEK)"
  case directoryDescriptor = "open (directory)"
  case descriptorMode = "fchmod"
  case duplicate = "fcntl (F_DUPFD_CLOEXEC)"

  /// Makes the call, unless a test has something else for it, and gives its result or the kernel's error.
  @inline(__always)
  package func make(_ call: () -> Int32) throws(SystemError) -> Int32 {
    #if DEBUG
      if let fault = FaultPlan.current?.next(self) {
        switch fault {
        case .fails(let number): throw SystemError(call: rawValue, number: number)
        case .answers(let value): return value
        }
      }
    #endif
    let answer = call()
    guard answer >= 0 else { throw SystemError(call: rawValue, number: -answer) }
    return answer
  }

  /// Makes a call that a signal may interrupt, again and again until it was not.
  @inline(__always)
  package func makeUninterrupted(_ call: () -> Int32) throws(SystemError) -> Int32 {
    while true {
      do {
        return try make(call)
      } catch {
        guard error.number == EINTR else { throw error }
      }
    }
  }
}

#if DEBUG
  /// What a test does to the system calls of its thread.
  package final class FaultPlan {
    package enum Fault: Sendable {
      /// The call is not made and fails with this error number.
      case fails(Int32)
      /// The call is not made and gives this result.
      case answers(Int32)
    }

    private var faults: [SystemCall: [Fault?]] = [:]

    package init() {}

    /// How many times each call was asked for.
    package private(set) var counts: [SystemCall: Int] = [:]

    /// The plan of the calling thread.
    package static var current: FaultPlan? {
      crl_fault_slot_get().map { Unmanaged<FaultPlan>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Lets the next calls of a kind fail in turn; nil lets one pass.
    package func plan(_ call: SystemCall, _ faults: Fault?...) {
      self.faults[call, default: []] += faults
    }

    /// Whether every planned fault has come.
    package var isUsedUp: Bool { faults.values.allSatisfy(\.isEmpty) }

    func next(_ call: SystemCall) -> Fault? {
      counts[call, default: 0] += 1
      guard var planned = faults[call], !planned.isEmpty else { return nil }
      let fault = planned.removeFirst()
      faults[call] = planned
      return fault
    }

    /// Lets the plan rule the calling thread's system calls during `body`.
    package func rule<Result>(_ body: () throws -> Result) rethrows -> Result {
      crl_fault_slot_set(Unmanaged.passUnretained(self).toOpaque())
      defer { crl_fault_slot_set(nil) }
      return try body()
    }
  }
#endif
