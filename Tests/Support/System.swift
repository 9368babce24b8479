import Glibc

/// What the system says of this process and its threads.
package enum System {
  /// The name that the kernel keeps for a thread of this process.
  package static func name(ofThread id: Int32) -> String? {
    var text = contents(of: "/proc/self/task/\(id)/comm")
    if text?.last == "\n" { text?.removeLast() }
    return text
  }

  package static var threadCount: Int {
    guard let directory = opendir("/proc/self/task") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    // Without the entries of the directory and of the one above.
    while readdir(directory) != nil { count += 1 }
    return count - 2
  }

  private static func contents(of path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
