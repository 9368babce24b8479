// SPDX-License-Identifier: Apache-2.0

// A name server for a few names, over UDP: one datagram socket on the main loop.
//
//     swift run --package-path Examples dns-responder [--port N] NAME=ADDRESS|TEXT …
//     dig @127.0.0.1 -p N NAME
//
// A value that is not an address becomes a TXT record. The port defaults to 0, for which the system chooses one. The
// program prints its address, and exits with 0 on SIGINT or SIGTERM.

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopSystemEvents

func fail(_ message: String, status: Int32) -> Never {
  let line = Array("dns-responder: \(message)\n".utf8)
  _ = write(STDERR_FILENO, line, line.count)
  exit(status)
}

typealias Record = (type: UInt16, data: [UInt8])

/// Returns a value's record: its address, or the text itself.
func record(_ value: String) -> Record {
  var bytes = [UInt8](repeating: 0, count: 16)
  if inet_pton(AF_INET, value, &bytes) == 1 { return (DNSQuestion.address, Array(bytes[..<4])) }
  if inet_pton(AF_INET6, value, &bytes) == 1 { return (DNSQuestion.address6, bytes) }
  let text = Array(value.utf8.prefix(255))
  return (DNSQuestion.text, [UInt8(text.count)] + text)
}

var port: UInt16 = 0
var names: [String: [Record]] = [:]
var arguments = CommandLine.arguments.dropFirst()
while let word = arguments.popFirst() {
  if word == "--port" {
    guard let number = arguments.popFirst().flatMap({ UInt16($0) }) else { fail("--port wants a number", status: 2) }
    port = number
  } else if let equals = word.firstIndex(of: "="), equals != word.startIndex {
    names[word[..<equals].lowercased(), default: []].append(record(String(word[word.index(after: equals)...])))
  } else {
    fail("usage: dns-responder [--port N] NAME=ADDRESS|TEXT …", status: 2)
  }
}
guard !names.isEmpty else { fail("usage: dns-responder [--port N] NAME=ADDRESS|TEXT …", status: 2) }

/// Returns the answer to a datagram, or nil if it must be ignored.
@Sendable func answer(_ bytes: [UInt8], _ names: [String: [Record]]) -> [UInt8]? {
  switch DNSQuestion.read(bytes) {
  case .ignored: nil
  case .rejected(let code, let header): DNSQuestion.rejection(code, header: header)
  case .question(let question):
    if let records = names[question.name] {
      question.answer(records.filter { question.wants($0.type) })
    } else {
      question.answer([], .noSuchName)
    }
  }
}

do {
  let known = names
  let loop = RunLoop.main
  let socket = try DatagramSocket(boundTo: .loopback(port: port)) { socket, event in
    switch event {
    case .received(let bytes, let envelope):
      // A truncated question is ignored.
      guard !envelope.isTruncated, let sender = envelope.sender,
        let answer = answer(bytes.withUnsafeBytes { Array($0) }, known)
      else { return }
      // An answer without room is dropped, as it could be in the network: the client asks again.
      _ = try? socket.send(answer, to: sender)
    case .writable, .failed: break
    case .closed(let error): fail("\(error)", status: 1)
    }
  }
  try loop.add(socket, forMode: .default)
  for signal in [SIGINT, SIGTERM] {
    try loop.add(SignalSource(signal: signal) { _, _ in loop.stop() }, forMode: .default)
  }
  print("listening on \(try socket.localAddress())")
  fflush(nil)
  loop.runUntilStopped()
} catch {
  fail("\(error)", status: 1)
}
