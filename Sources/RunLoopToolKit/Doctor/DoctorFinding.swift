// SPDX-License-Identifier: Apache-2.0

/// Something that is wrong with a process, with what shows it and what to do next.
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
  }

  let kind: Kind
  /// The thread that it is about; nil: the process.
  var thread: String?
  let title: String
  var details: [String] = []
  /// A command that says more.
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
