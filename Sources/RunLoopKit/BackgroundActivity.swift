// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import Foundation
import RunLoopLibC
import RunLoopCore

/// One wait, read or accept of a file handle: it is done on a queue, and told by a source of the loop that asked for
/// it.
final class BackgroundActivity: @unchecked Sendable {
  // Sendable: the source is set before anybody else has the activity; `readable` and `isOver` are the queue's; what was
  // read or accepted is the queue's until the source is signalled, and the loop's thread's from then on.

  enum Kind: Sendable {
    case wait, read, readToEnd, accept
  }

  private static let chunk = 64 * 1024

  private let kind: Kind
  private let handle: FileHandle
  private let descriptor: Int32
  private let loop: RunLoop
  /// Where it was begun: who observes its notification is not known.
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

  /// Begins an activity; the calling thread's loop stays alive in the modes until its notification has been posted.
  static func begin(_ kind: Kind, of handle: FileHandle, in modes: [RunLoop.Mode], from origin: Origin) {
    guard !modes.isEmpty else {
      return Diagnostic.noMode.report(
        "the file handle for descriptor \(handle.fileDescriptor) has no mode to post its notification in, and does nothing: "
          + "name at least one mode, such as .default")
    }
    let activity = BackgroundActivity(kind, handle, .current, origin)
    // It is cancelled when it has told, and when its loop ends before.
    let source = RunLoop.Source(cancel: { _, _ in activity.leave() }) { activity.tell() }
    activity.source = source
    for mode in modes { activity.loop.add(source, forMode: mode) }
    activity.queue.async { activity.advance() }
  }
}

// On the loop's thread.
extension BackgroundActivity {
  private func tell() {
    // Another activity may begin, and the loop may run, while the notification is posted.
    source?.invalidate()
    let (name, userInfo) = notification
    noteCall(for: origin)
    NotificationCenter.default.post(name: name, object: handle, userInfo: userInfo)
  }

  /// Lets go of the closures that hold the activity, and of what the queue watches.
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

// On the queue.
extension BackgroundActivity {
  /// Does what can be done without waiting; then waits.
  private func advance() {
    // A handle that was closed has no descriptor.
    if descriptor < 0 { settle(-EBADF) }
    while !isOver, isReadable { step() }
    guard !isOver, readable == nil else { return }
    // What cannot be watched, as a file on a disk, is always readable and has not come here.
    let watch = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    watch.setEventHandler { [self] in advance() }
    watch.activate()
    readable = watch
  }

  private var isReadable: Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // An error is found out by the step that it fails.
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

  /// Finishes after a system call that answered so, unless it has to be made again.
  private func settle(_ answer: Int32) {
    // Somebody else has taken what was there, or a signal came.
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
