// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a text has beside its colours and attributes: the shape and colour of its underline, and a link.
struct Decoration: Hashable, Sendable {
  var underlineStyle = Style.UnderlineStyle.single
  var underlineColor = Color.default
  /// The address, in printable characters of ASCII; empty: none.
  var link = ""

  /// What is sent of an address: other bytes than printable ones of ASCII are percent-encoded, so that none can end the
  /// sequence; nil if it is longer than terminals take.
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

/// The decorations that have a number, by which styles name them; 0: none.
final class DecorationTable: @unchecked Sendable {
  // Sendable: all variables are guarded by the lock.
  //
  // As with clusters, a number is never used for another decoration, as cells are values that anybody may keep.
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

  /// The number of a decoration; 0 if it is none, or there is no room for another.
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
  /// The longest address of a link, in bytes as it is sent: terminals ignore longer ones.
  public static let maximumLink = 2083

  /// The shapes of an underline.
  public enum UnderlineStyle: UInt8, Hashable, Sendable {
    /// A line, two of them, a wave, dots, dashes.
    case single = 1, double, curly, dotted, dashed
  }

  /// The shape of the underline, where the attributes have one; a terminal that has only one shape shows that.
  public var underlineStyle: UnderlineStyle {
    get { decorated.underlineStyle }
    set { decorate { $0.underlineStyle = newValue } }
  }

  /// The colour of the underline; the default is that of the text, which terminals without such colours show too.
  public var underlineColor: Color {
    get { decorated.underlineColor }
    set { decorate { $0.underlineColor = newValue } }
  }

  /// The address that the text leads to, which terminals open when the user clicks it (OSC 8); nil: none.
  ///
  /// It is sent to terminals that are known to understand it. Bytes that are no printable character of ASCII are
  /// percent-encoded; an address of more than ``maximumLink`` bytes is not set. A process can use a million different
  /// links and underlines, of 64 MiB together: text with further ones has none.
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
