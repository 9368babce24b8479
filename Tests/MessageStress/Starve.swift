// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopMessages

/// A process without room for a message's descriptors reports that, keeps none of them, and continues.
func starve() {
  var template = Array("/tmp/message-starve-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { fatalError("no directory") }
  let directory = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
  defer { rmdir(directory) }
  do {
    let port = try MessagePort.Local(name: "starve", directory: .init(path: directory)) { request in
      MessagePort.Reply([UInt8(request.descriptors.count)])
    }
    defer { port.invalidate() }
    let loop = RunLoop.current
    try loop.add(port, forMode: "starve")
    let remote = try MessagePort.Remote(name: "starve", directory: .init(path: directory))
    func ask(_ count: Int) throws(MessagePortError) -> [UInt8]? {
      try remote.send(
        id: 1, descriptors: Array(repeating: 0, count: count), receiveTimeout: .seconds(600), replyMode: "starve")?
        .bytes
    }
    guard try ask(0) == [0] else { fatalError("no reply") }
    let open = openDescriptors()
    // Another thread closes those that arrived.
    func awaitClosing() { for _ in 0..<10_000 where openDescriptors() > open { usleep(1000) } }
    guard try ask(50) == [50] else { fatalError("no reply") }
    awaitClosing()
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = rlim_t(open + 10)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    do throws(MessagePortError) {
      print("reply", try ask(50) as Any)
    } catch {
      print(error == .rejected(.descriptorsLost) ? "refused" : "\(error)")
    }
    awaitClosing()
    print(openDescriptors() - open, try ask(2) ?? [], port.statistics.lackingResourceCount)
  } catch { print(error) }
}
