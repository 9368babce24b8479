// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The part of a style besides colours and attributes: the shape and colour of an underline, and a link.
struct Decoration: Hashable, Sendable {
  var underlineStyle = Style.UnderlineStyle.single
  var underlineColor = Color.default
  /// The URL in printable ASCII characters, or an empty string.
  var link = ""

  /// Returns a URL whose bytes other than printable ASCII are percent-encoded, so that none of them can end the
  /// control sequence, or nil if it is longer than terminals accept.
  static func encoded(_ link: String) -> String? {
    guard link.utf8.count <= Style.maximumLink else { return nil }
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in link.utf8 {
      if (0x21...0x7E).contains(byte) {
        bytes.append(byte)
      } else {
        bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
      }
    }
    return bytes.count <= Style.maximumLink ? String(decoding: bytes, as: UTF8.self) : nil
  }
}

/// The table that assigns numbers to decorations, by which styles refer to them; 0 means no decoration.
final class DecorationTable: @unchecked Sendable {
  // Sendable: the lock guards all variables.
  //
  // As with clusters, numbers are never reused, because cells can be kept for any length of time.
  static let shared = DecorationTable(capacity: 1 << 20, bytes: 1 << 26)

  private let capacity: Int
  private var bytesLeft: Int
  private let lock = Lock()
  private var numbers: [Decoration: UInt32] = [:]
  private var decorations: ContiguousArray<Decoration> = [Decoration()]

  init(capacity: Int, bytes: Int) {
    self.capacity = capacity
    bytesLeft = bytes
  }

  /// Returns the number of a decoration, or 0 if it is empty or the table is full.
  func number(of decoration: Decoration) -> UInt32 {
    guard decoration != Decoration() else { return 0 }
    return lock.withLock {
      if let number = numbers[decoration] { return number }
      let size = decoration.link.utf8.count
      guard decorations.count < capacity, size <= bytesLeft else { return 0 }
      bytesLeft -= size
      let number = UInt32(decorations.count)
      numbers[decoration] = number
      decorations.append(decoration)
      return number
    }
  }

  subscript(number: UInt32) -> Decoration {
    lock.withLock { Int(number) < decorations.count ? decorations[Int(number)] : Decoration() }
  }
}

extension Style {
  /// The maximum length of a link in bytes, after encoding, beyond which terminals ignore it.
  public static let maximumLink = 2083

  /// The shapes of an underline.
  public enum UnderlineStyle: UInt8, Hashable, Sendable {
    /// A line, a double line, a wave, dots, or dashes.
    case single = 1, double, curly, dotted, dashed
  }

  /// The shape of an underline, `single` by default, which terminals with only one shape ignore.
  public var underlineStyle: UnderlineStyle {
    get { decorated.underlineStyle }
    set { decorate { $0.underlineStyle = newValue } }
  }

  /// The colour of the underline, by default that of the text, which is also the fallback for other terminals.
  public var underlineColor: Color {
    get { decorated.underlineColor }
    set { decorate { $0.underlineColor = newValue } }
  }

  /// The URL that terminals open when the user clicks the text (OSC 8), or `nil`, which is the default.
  ///
  /// It is sent to terminals that are known to support it. Bytes other than printable ASCII characters are
  /// percent-encoded. A URL of more than ``maximumLink`` bytes is not set. A process can use a million different links
  /// and underlines with a total of 64 MiB; text with further ones has none.
  public var link: String? {
    get {
      let link = decorated.link
      return link.isEmpty ? nil : link
    }
    set { decorate { $0.link = newValue.flatMap(Decoration.encoded) ?? "" } }
  }

  private var decorated: Decoration { decoration == 0 ? Decoration() : DecorationTable.shared[decoration] }

  private mutating func decorate(_ body: (inout Decoration) -> Void) {
    var new = decorated
    body(&new)
    decoration = DecorationTable.shared.number(of: new)
  }
}
