// SPDX-License-Identifier: Apache-2.0

import CRunLoopAgent
import RunLoopCore
import RunLoopLibC

// The agent's responses. They are written by the connection's own thread, without tasks or Dispatch. The only locks
// taken are those of a loop's items and table, which are never held during a call-out.
//
//   {"request": "reasons"}              one or more frames per loop with what keeps it alive; then {"end": true}
//   {"request": "dump"}                 a loop's description and the places that added its items; then {"end": true}
//   {"request": "permit"}               lets the tool read memory as a debugger while it is connected and holds a level
//   {"request": "hold", "level": 0...2} holds a level while the tool is connected
//
// All other requests get {"error": text}.

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

/// Handles one request.
struct AgentAnswers {
  /// Sends a frame, and returns false if the peer has disconnected.
  let sendBytes: ([UInt8]) -> Bool
  /// Lets the tool read memory, and returns 0 or a negative error number.
  let permit: () -> Int32
  let hold: (UInt32) -> Void

  /// The maximum number of reasons per frame, which keeps frames well below the size limit.
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

  /// The members shared by all responses about a loop.
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
    // A long description is split into several frames, at character boundaries.
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
