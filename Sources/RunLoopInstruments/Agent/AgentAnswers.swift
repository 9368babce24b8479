// SPDX-License-Identifier: Apache-2.0

import CRunLoopAgent
import RunLoopCore
import RunLoopLibC

// What the agent answers. It runs on a plain thread of the connection, uses neither tasks nor Dispatch, and takes no
// lock but those of the items and of the table of a loop, which no call-out holds.
//
//   {"request": "reasons"}              for each loop one frame or more with what keeps it; then {"end": true}
//   {"request": "dump"}                 for each loop its description and the places of its items; then {"end": true}
//   {"request": "permit"}               the tool, which holds a level, may read the memory as a debugger as long as it
//                                       does and is connected
//   {"request": "hold", "level": 0...2} a level as long as the tool is connected
//
// Anything else is answered with {"error": text}.

@_cdecl("rli_answer")
func answer(_ bytes: UnsafePointer<UInt8>, _ count: Int, _ connection: UnsafeMutableRawPointer) {
  let connection = Connection(pointer: OpaquePointer(connection))
  AgentAnswers(sendBytes: connection.send, permit: connection.permit, hold: connection.hold)
    .answer(UnsafeBufferPointer(start: bytes, count: count))
}

private struct Connection {
  let pointer: OpaquePointer

  func send(_ bytes: [UInt8]) -> Bool { crla_send(pointer, bytes, bytes.count) != 0 }
  func permit() -> Int32 { crla_permit(pointer) }
  func hold(_ level: UInt32) { crla_hold(pointer, level) }
}

/// Answers one request.
struct AgentAnswers {
  /// Sends a frame; false if nobody is there any more.
  let sendBytes: ([UInt8]) -> Bool
  /// Lets the tool read the memory; a negative number of an error.
  let permit: () -> Int32
  let hold: (UInt32) -> Void

  /// How many reasons stand in a frame, so that it is well below the limit.
  static let reasonsInFrame = 500

  func answer(_ bytes: some Sequence<UInt8>) {
    guard let document = AgentDocument(bytes: bytes), let request = document["request"]?.text else {
      return fail("the request is no document that has one")
    }
    switch request {
    case "reasons": sendLoops(sendReasons)
    case "dump": sendLoops(sendDescription)
    case "permit":
      switch permit() {
      case 0: end(nil)
      case -EPERM: fail("the tool holds no level, and only one that does may read the memory")
      case -EACCES: fail("nobody has asked the process for an agent, so that it lets no other read its memory")
      default: fail("the tool is in another namespace of processes")
      }
    case "hold":
      guard let level = document["level"]?.int, (0...2).contains(level) else { return fail("there is no such level") }
      hold(UInt32(level))
      end(nil)
    default: fail("the process knows no such request; it may be older than the tool")
    }
  }

  private func fail(_ reason: String) { _ = reply(.object(["error": .text(reason)])) }

  private func end(_ failure: String?) {
    if let failure { fail(failure) } else { _ = reply(.object(["end": .bool(true)])) }
  }

  private func reply(_ document: AgentDocument) -> Bool {
    let bytes = document.bytes
    if bytes.count <= CRLA_FRAME_LIMIT { return sendBytes(bytes) }
    return sendBytes(AgentDocument.object(["error": .text("an answer is too large to be sent")]).bytes)
  }

  private func sendLoops(_ sendOne: (RunLoop) -> Bool) {
    for loop in RunLoopRegistry.shared.all where !loop.takesNoItems { if !sendOne(loop) { return } }
    end(nil)
  }

  /// What every answer about a loop begins with.
  private func members(of loop: RunLoop) -> [String: AgentDocument] {
    let face = loop.faceReading
    return [
      "tid": .int(Int64(loop.threadID)), "thread": .text(loop.nameOfThread ?? ""),
      "mode": loop.currentMode.map { .text($0.rawValue) } ?? .null, "running": .bool(loop.currentMode != nil),
      "depth": .int(Int64(face.depth)),
    ]
  }

  private func sendReasons(of loop: RunLoop) -> Bool {
    var members = members(of: loop)
    let items = loop.keptItems
    for start in stride(from: 0, through: max(0, items.count - 1), by: Self.reasonsInFrame) {
      members["reasons"] = .list(items[start..<min(start + Self.reasonsInFrame, items.count)].map { reason($0) })
      guard reply(.object(members)) else { return false }
    }
    return true
  }

  private func reason(_ item: KeptItem) -> AgentDocument {
    .object([
      "kind": .text(item.kind.rawValue), "item": .address(item.item),
      "modes": .list(item.modes.map { .text($0.rawValue) }), "code": .address(item.code),
      "added": .list(item.added.map { .address($0) }), "detail": .text(item.detail),
    ])
  }

  private func sendDescription(of loop: RunLoop) -> Bool {
    let text = loop.debugDescription
    let places = loop.addedPlaces
    var members = members(of: loop)
    // A long description comes in parts, each of whole characters.
    var rest = Substring(text)
    repeat {
      let part = rest.prefix(100_000)
      rest = rest[part.endIndex...]
      members["description"] = .text(String(part))
      guard reply(.object(members)) else { return false }
    } while !rest.isEmpty
    for start in stride(from: 0, to: places.count, by: Self.reasonsInFrame) {
      let part = places[start..<min(start + Self.reasonsInFrame, places.count)]
      let list = part.map { AgentDocument.list([.address($0.item)] + $0.added.map { .address($0) }) }
      members["description"] = nil
      members["places"] = .list(list)
      guard reply(.object(members)) else { return false }
    }
    return true
  }
}
