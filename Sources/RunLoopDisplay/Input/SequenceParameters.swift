// SPDX-License-Identifier: Apache-2.0

/// The numeric parameters of a control sequence, up to the maximum number of any supported sequence.
struct SequenceParameters: Sendable {
  /// The maximum number of parameters that are stored.
  static let limit = 8

  /// The byte that marks a private sequence, `<`, `=`, `>` or `?`, or 0 if there is none.
  var marker: UInt8 = 0
  /// The intermediate byte before the final one, or 0 if there is none.
  var intermediate: UInt8 = 0
  /// Whether no supported sequence has this form.
  var isMalformed = false
  /// The number of parameters, the last of which may be empty.
  private(set) var count = 0
  /// Whether nothing has arrived yet.
  private(set) var isUntouched = true
  private var values: (Int32, Int32, Int32, Int32, Int32, Int32, Int32, Int32) = (-1, -1, -1, -1, -1, -1, -1, -1)
  /// The second part of each parameter, after a colon.
  private var seconds: (Int32, Int32, Int32, Int32, Int32, Int32, Int32, Int32) = (-1, -1, -1, -1, -1, -1, -1, -1)
  /// The third part of the first parameter, after its second colon.
  private(set) var third: Int?
  private var part = 0

  /// Returns the parameter at an index, or nil if it is missing.
  subscript(index: Int) -> Int? { Self.read(values, index) }

  /// Returns the second part of the parameter at an index, after its first colon.
  func second(_ index: Int) -> Int? { Self.read(seconds, index) }

  /// Whether the bytes of a read are further parameters and a final byte, after the sequence was given up.
  ///
  /// A final byte alone could be a key instead, unless it is one that ends the sequence but is rarely typed.
  func continues(with bytes: UnsafeRawBufferPointer) -> Bool {
    let index = bytes.firstIndex { !(0x30...0x3B).contains($0) } ?? bytes.count
    guard index < bytes.count, (0x40...0x7E).contains(bytes[index]) else { return false }
    let final = bytes[index]
    return switch marker {
    case 0x3C: final == 0x4D || final == 0x6D
    case 0: index > 0 || final == 0x7E
    default: true
    }
  }

  mutating func touch() { isUntouched = false }

  mutating func add(digit: UInt8) {
    isUntouched = false
    if count == 0 { count = 1 }
    guard count <= Self.limit, part < 3 else { return }
    let index = count - 1
    if part == 2 {
      if index == 0 { third = min(9_999_999, (third ?? 0) * 10 + Int(digit)) }
      return
    }
    func append(_ digit: UInt8, to value: inout Int32) { value = min(9_999_999, max(0, value) * 10 + Int32(digit)) }
    if part == 0 {
      Self.change(&values, index) { append(digit, to: &$0) }
    } else {
      Self.change(&seconds, index) { append(digit, to: &$0) }
    }
  }

  /// Handles a semicolon, which begins another parameter.
  mutating func separate() {
    isUntouched = false
    count = min(Self.limit + 1, max(1, count) + 1)
    part = 0
  }

  /// Handles a colon, which begins another part of the parameter.
  mutating func divide() {
    isUntouched = false
    if count == 0 { count = 1 }
    part = min(3, part + 1)
  }

  private typealias Values = (Int32, Int32, Int32, Int32, Int32, Int32, Int32, Int32)

  private static func read(_ values: Values, _ index: Int) -> Int? {
    guard index < limit else { return nil }
    let value = withUnsafeBytes(of: values) { $0.load(fromByteOffset: index * 4, as: Int32.self) }
    return value < 0 ? nil : Int(value)
  }

  private static func change(_ values: inout Values, _ index: Int, _ body: (inout Int32) -> Void) {
    withUnsafeMutableBytes(of: &values) { bytes in
      var value = bytes.load(fromByteOffset: index * 4, as: Int32.self)
      body(&value)
      bytes.storeBytes(of: value, toByteOffset: index * 4, as: Int32.self)
    }
  }
}
