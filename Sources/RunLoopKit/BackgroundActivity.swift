// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import Foundation
import RunLoopLibC
import RunLoopCore

/// A wait, read or accept of a file handle, which a queue performs and a source of the requesting loop reports.
final class BackgroundActivity: @unchecked Sendable {
  // Sendable: the source is set before the activity is shared. Only the queue uses `readable` and `isOver`. The queue
  // owns the results until it signals the source, and the loop's thread owns them afterwards.

  enum Kind: Sendable {
    case wait, read, readToEnd, accept
  }

  private static let chunk = 64 * 1024

  private let kind: Kind
  private let handle: FileHandle
  private let descriptor: Int32
  private let loop: RunLoop
  /// The place where the activity was started, because the observer of its notification is not known.
  private let origin: Origin
  private let queue = DispatchQueue(label: "RunLoopKit.FileHandle", target: .global())
  private var source: RunLoop.Source?
  private var readable: (any DispatchSourceRead)?
  private var isOver = false
  private var data = Data()
  private var connection: FileHandle?
  private var error: Int32 = 0

  private init(_ kind: Kind, _ handle: FileHandle, _ loop: RunLoop, _ origin: Origin) {
    self.kind = kind
    self.handle = handle
    self.descriptor = handle.fileDescriptor
    self.loop = loop
    self.origin = origin
  }

  /// Begins an activity, which keeps the calling thread's loop alive in the modes until its notification is posted.
  static func begin(_ kind: Kind, of handle: FileHandle, in modes: [RunLoop.Mode], from origin: Origin) {
    guard !modes.isEmpty else {
      return Diagnostic.noMode.report(
        "the file handle for descriptor \(handle.fileDescriptor) has no mode to post its notification in, and does nothing: "
          + "name at least one mode, such as .default")
    }
    let activity = BackgroundActivity(kind, handle, .current, origin)
    // The source is cancelled after the notification, or earlier if the loop ends.
    let source = RunLoop.Source(cancel: { _, _ in activity.leave() }) { activity.tell() }
    activity.source = source
    for mode in modes { activity.loop.add(source, forMode: mode) }
    activity.queue.async { activity.advance() }
  }
}

// These methods are called on the loop's thread.
extension BackgroundActivity {
  private func tell() {
    // The notification may start another activity or run the loop.
    source?.invalidate()
    let (name, userInfo) = notification
    noteCall(for: origin)
    NotificationCenter.default.post(name: name, object: handle, userInfo: userInfo)
  }

  /// Releases the closures that retain the activity, and stops the queue's watch.
  private func leave() {
    source?.invalidate()
    queue.async { self.end() }
  }

  private var notification: (name: Notification.Name, userInfo: [AnyHashable: Any]) {
    var userInfo: [AnyHashable: Any] = error == 0 ? [:] : ["NSFileHandleError": NSNumber(value: error)]
    switch kind {
    case .wait:
      return (.NSFileHandleDataAvailable, userInfo)
    case .read:
      userInfo[NSFileHandleNotificationDataItem] = data
      return (FileHandle.readCompletionNotification, userInfo)
    case .readToEnd:
      userInfo[NSFileHandleNotificationDataItem] = data
      return (.NSFileHandleReadToEndOfFileCompletion, userInfo)
    case .accept:
      userInfo[NSFileHandleNotificationFileHandleItem] = connection
      return (.NSFileHandleConnectionAccepted, userInfo)
    }
  }
}

// These methods are called on the queue.
extension BackgroundActivity {
  /// Does as much as possible without blocking, and then waits.
  private func advance() {
    // A closed handle has no descriptor, and one that is open only for writing never becomes readable.
    if descriptor < 0 || isWriteOnly { settle(-EBADF) }
    while !isOver, isReadable { step() }
    guard !isOver, readable == nil else { return }
    // Descriptors that cannot be watched, such as regular files, are always readable and do not get here.
    let watch = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    watch.setEventHandler { [self] in advance() }
    watch.activate()
    readable = watch
  }

  private var isWriteOnly: Bool {
    let flags = fcntl(descriptor, F_GETFL)
    return flags >= 0 && flags & O_ACCMODE == O_WRONLY
  }

  private var isReadable: Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // On an error, the next step fails and reports it.
    return poll(&entry, 1, 0) > 0
  }

  private func step() {
    switch kind {
    case .wait:
      finish()
    case .accept:
      let answer = crl_accept(descriptor)
      if answer >= 0 { connection = FileHandle(fileDescriptor: answer, closeOnDealloc: true) }
      settle(answer)
    case .read, .readToEnd:
      var bytes = Data(count: BackgroundActivity.chunk)
      let count = bytes.withUnsafeMutableBytes { RunLoopLibC.read(descriptor, $0.baseAddress, $0.count) }
      if count > 0 { data.append(bytes.prefix(count)) }
      if count <= 0 || kind == .read { settle(count < 0 ? -errno : 0) }
    }
  }

  /// Finishes with the result of a system call, unless the call must be repeated.
  private func settle(_ answer: Int32) {
    // Another reader took the data, or a signal interrupted the call.
    guard answer != -EAGAIN, answer != -EINTR else { return }
    if answer < 0 { error = -answer }
    finish()
  }

  private func finish() {
    end()
    source?.signal()
    loop.wakeUp()
  }

  private func end() {
    isOver = true
    readable?.cancel()
    readable = nil
  }
}
