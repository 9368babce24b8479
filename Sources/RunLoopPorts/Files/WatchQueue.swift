import CRunLoopSystem
import Glibc
import RunLoopCore

/// The kernel's queue of file changes, and the calls that fill it.
struct WatchQueue: Sendable {
  let descriptor: OwnedDescriptor

  /// One entry of the queue.
  struct Entry {
    let watch: Int32
    let mask: UInt32
    let cookie: UInt32
    let name: [UInt8]

    func has(_ bits: Int32...) -> Bool { bits.contains { mask & UInt32($0) != 0 } }
  }

  init() throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.watchCreate.make { crl_watch_create() })
  }

  func add(_ path: FileChangeSource.Path, _ mask: UInt32) throws(SystemError) -> Int32 {
    try SystemCall.watchAdd.make { path.withCString { crl_watch_add(descriptor.number, $0, mask) } }
  }

  /// Ends a watch, if the kernel has not ended it already.
  func remove(_ watch: Int32) {
    _ = try? SystemCall.watchRemove.make { crl_watch_remove(descriptor.number, watch) }
  }

  /// How many bytes are read at once.
  private static let capacity = 32_768
  /// More than one entry takes: after a read that left so much room the queue was empty.
  private static let largest = MemoryLayout<inotify_event>.size + Int(NAME_MAX) + 1

  /// Reads some entries, without waiting; says whether the queue was empty then.
  func read() throws(SystemError) -> (entries: [Entry], isDrained: Bool) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.capacity, alignment: MemoryLayout<inotify_event>.alignment)
    defer { buffer.deallocate() }
    let count: Int
    do throws(SystemError) {
      count = Int(
        try SystemCall.watchRead.makeUninterrupted { crl_read(descriptor.number, buffer.baseAddress, buffer.count) })
    } catch {
      if error.number == EAGAIN { return ([], true) }
      throw error
    }
    return (Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count])), count + Self.largest <= Self.capacity)
  }

  private static func parse(_ bytes: UnsafeRawBufferPointer) -> [Entry] {
    let head = MemoryLayout<inotify_event>.size
    var entries: [Entry] = []
    var offset = 0
    while offset + head <= bytes.count {
      let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
      let name = bytes[(offset + head)...].prefix(Int(event.len)).prefix { $0 != 0 }
      entries.append(Entry(watch: event.wd, mask: event.mask, cookie: event.cookie, name: Array(name)))
      offset += head + Int(event.len)
    }
    return entries
  }
}

/// The entries of a directory.
enum DirectoryScan {
  /// Calls `body` with each name and whether it is a directory itself, and not a link to one.
  static func forEach(
    in path: FileChangeSource.Path, followsLink: Bool, _ body: (_ name: [UInt8], _ isDirectory: Bool) -> Void
  ) throws(SystemError) {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (followsLink ? 0 : O_NOFOLLOW)
    let number = try SystemCall.directoryOpen.make {
      path.withCString {
        let answer = open($0, flags)
        return answer < 0 ? -errno : answer
      }
    }
    guard let directory = fdopendir(number) else {
      let error = SystemError(call: SystemCall.directoryOpen.rawValue, number: errno)
      _ = crl_close(number)
      throw error
    }
    defer { closedir(directory) }
    while let entry = try next(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name == [UInt8(ascii: ".")] || name == [UInt8(ascii: "."), UInt8(ascii: ".")] { continue }
      body(name, isDirectory(entry.pointee.d_type, name, number))
    }
  }

  /// The next entry; nil at the end, which an error is not: what is behind it would never be watched.
  private static func next(_ directory: OpaquePointer) throws(SystemError) -> UnsafeMutablePointer<dirent>? {
    var entry: UnsafeMutablePointer<dirent>?
    _ = try SystemCall.directoryRead.make {
      errno = 0
      entry = readdir(directory)
      return entry == nil ? -errno : 0
    }
    return entry
  }

  private static func isDirectory(_ type: UInt8, _ name: [UInt8], _ parent: Int32) -> Bool {
    guard type == UInt8(DT_UNKNOWN) else { return type == UInt8(DT_DIR) }
    // Some file systems do not say.
    var status = stat()
    let answer = FileChangeSource.Path(bytes: name).withCString { fstatat(parent, $0, &status, AT_SYMLINK_NOFOLLOW) }
    return answer == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
