// SPDX-License-Identifier: Apache-2.0

/// A problem of a process, with its evidence and the next command to run.
struct DoctorFinding {
  enum Kind: String {
    case deadlock
    case hang
    case waits
    case childPipe = "child-pipe"
    case unread
    case overload
    case backlog
    case growth
    case unseen
    case stopped
  }

  let kind: Kind
  /// The thread concerned, or nil for the whole process.
  var thread: String?
  let title: String
  var details: [String] = []
  /// A command for more information.
  var next: String?

  var lines: [String] {
    [title] + details.map { "  \($0)" } + (next.map { ["  next: \($0)"] } ?? [])
  }

  var json: JSON {
    .object([
      ("kind", .text(kind.rawValue)), ("thread", .optional(thread)), ("title", .text(title)),
      ("details", .list(details.map { .text($0) })), ("next", .optional(next)),
    ])
  }
}
