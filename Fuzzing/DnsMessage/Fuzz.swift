// SPDX-License-Identifier: Apache-2.0

/// What libFuzzer calls with bytes of its own: a datagram of anybody's, to the name server of the examples.
///
/// Whatever it is, it is ignored, or answered with the number that it has: by a message that fits into a datagram of
/// DNS, that says of itself that it is an answer, and that is ignored where it is taken for a question, so that two
/// servers never answer each other.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  var answers: [[UInt8]] = []
  switch DNSQuestion.read(bytes) {
  case .ignored: precondition(count < 12 || bytes[2] & 0x80 != 0, "a question is ignored")
  case .rejected(let code, let header):
    precondition(code != .none && header == Array(bytes[..<12]))
    answers.append(DNSQuestion.rejection(code, header: header))
  case .question(let question):
    precondition(question.name.utf8.count <= 3 * 255 && question.name == question.name.lowercased())
    for records in 0..<3 {
      let record = (type: DNSQuestion.text, data: [UInt8](repeating: 7, count: 255))
      answers.append(question.answer(Array(repeating: record, count: records)))
    }
    answers.append(question.answer([], .noSuchName))
  }
  for answer in answers {
    precondition(answer.count >= 12 && answer.count <= 512, "an answer of \(answer.count) bytes")
    precondition(answer[..<2].elementsEqual(bytes[..<2]) && answer[2] & 0x80 != 0, "no answer to this")
    guard case .ignored = DNSQuestion.read(answer) else { preconditionFailure("an answer is answered") }
  }
  return 0
}
