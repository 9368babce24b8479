// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The system calls made by this package, by name, so that a test can make each of them fail.
@usableFromInline
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
  /// Also used for `send` when it sends a small packet without descriptors.
  case sendMessage = "sendmsg"
  case receiveMessage = "recvmsg"
  case streamRead = "recv"
  case streamWrite = "send"
  case streamPeek = "recv (MSG_PEEK)"
  case fileRead = "read (stream)"
  case fileWrite = "write (stream)"
  case fileReady = "poll"
  case fileWatchable = "epoll_ctl (stream)"
  case fileReopen = "open (stream)"
  case datagramReceive = "recvfrom"
  case datagramsReceive = "recvmmsg"
  case datagramSend = "sendto"
  case pipe = "pipe2"
  case terminalOpen = "posix_openpt"
  case terminalResize = "ioctl (TIOCSWINSZ)"
  case signalAction = "sigaction"
  case processDescriptor = "pidfd_open"
  case processWait = "waitid"
  case processSignal = "pidfd_send_signal"
  case processKill = "kill"
  case processSpawn = "clone"
  case descriptorFlags = "fcntl"
  case watchCreate = "inotify_init1"
  case watchAdd = "inotify_add_watch"
  case watchRemove = "inotify_rm_watch"
  case watchRead = "read (inotify)"
  case directoryOpen = "opendir"
  case directoryRead = "readdir"
  case makeDirectory = "mkdir"
  case unlink
  case rename
  case link = "linkat"
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

  /// Makes the call and returns its result, or throws the kernel's error or one planned by a test.
  ///
  /// It is inlinable because higher layers make such calls for every message and datagram.
  @inlinable
  @inline(__always)
  package func make(_ call: () -> Int32) throws(SystemError) -> Int32 {
    #if DEBUG
      if let planned = try plannedAnswer() { return planned }
    #endif
    let answer = call()
    guard answer >= 0 else { throw error(-answer) }
    return answer
  }

  @usableFromInline
  package static func isInterruption(_ error: SystemError) -> Bool { error.number == EINTR }

  @usableFromInline
  package func error(_ number: Int32) -> SystemError { SystemError(call: rawValue, number: number) }

  #if DEBUG
    /// Returns the planned result, throws the planned error, or returns `nil` to make the real call.
    @usableFromInline
    package func plannedAnswer() throws(SystemError) -> Int32? {
      switch FaultPlan.current?.next(self) {
      case .fails(let number): throw error(number)
      case .answers(let value): return value
      case nil: return nil
      }
    }
  #endif

  /// Makes a call, and repeats it as long as it is interrupted by a signal.
  @inlinable
  @inline(__always)
  package func makeUninterrupted(_ call: () -> Int32) throws(SystemError) -> Int32 {
    while true {
      do {
        return try make(call)
      } catch {
        guard SystemCall.isInterruption(error) else { throw error }
      }
    }
  }
}
