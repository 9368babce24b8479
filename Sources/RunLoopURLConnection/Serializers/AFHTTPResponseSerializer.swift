// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking

/// The domain of errors of answers that are not acceptable or cannot be read.
public let AFURLResponseSerializationErrorDomain = "com.alamofire.error.serialization.response"
/// The head of the answer, in an error's `userInfo`.
public let AFNetworkingOperationFailingURLResponseErrorKey = "com.alamofire.serialization.response.error.response"
/// The body of the answer, in an error's `userInfo`.
public let AFNetworkingOperationFailingURLResponseDataErrorKey = "com.alamofire.serialization.response.error.data"

/// Makes something of an answer.
///
/// An operation's serializer is an ``AFHTTPResponseSerializer``, as in AFNetworking: a serializer of the program's own
/// is a subclass of it. Others can be members of an ``AFCompoundResponseSerializer``.
public protocol AFURLResponseSerialization: AnyObject, Sendable {
  /// What the body stands for; nil for an empty one.
  ///
  /// Called by a queue of dispatch, after the end of the request.
  ///
  /// - Throws: Why the answer is not acceptable, or its body cannot be read.
  func responseObject(for response: URLResponse?, data: Data?) throws -> Any?
}

/// Checks an answer's status and type, and returns the body as it is.
///
/// It is AFNetworking 2's class of this name.
open class AFHTTPResponseSerializer: AFURLResponseSerialization, @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// The statuses of answers that are taken; nil: all.
  open var acceptableStatusCodes: IndexSet? = IndexSet(200..<300)
  /// The types of bodies that are taken; nil: all.
  open var acceptableContentTypes: Set<String>?
  /// The encoding of texts whose answer names none.
  open var stringEncoding = String.Encoding.utf8

  /// Makes a serializer that takes every body and the statuses of success.
  public init() {}

  /// Throws if an answer is not taken.
  ///
  /// An empty body may have any type.
  ///
  /// - Throws: An error of ``AFURLResponseSerializationErrorDomain`` with the code `NSURLErrorBadServerResponse` for
  ///   the status, or `NSURLErrorCannotDecodeContentData` for the type, which is the underlying error of the other if
  ///   both are not taken.
  open func validateResponse(_ response: HTTPURLResponse?, data: Data?) throws {
    guard let response else { return }
    var found: NSError?
    let type = response.mimeType ?? "application/octet-stream"
    if let acceptableContentTypes, let data, !data.isEmpty, !acceptableContentTypes.contains(type.lowercased()) {
      found = failure(.cannotDecodeContentData, "the body's type is \(type)", response, data)
    }
    if let acceptableStatusCodes, !acceptableStatusCodes.contains(response.statusCode) {
      found = failure(
        .badServerResponse, "the server has answered with the status \(response.statusCode)", response, data, found)
    }
    if let found { throw found }
  }

  /// Returns the body as it is, after ``AFHTTPResponseSerializer/validateResponse(_:data:)``.
  ///
  /// A subclass overrides this to make something else of it.
  ///
  /// - Parameters:
  ///   - response: The head of the answer.
  ///   - data: The body.
  /// - Throws: What ``AFHTTPResponseSerializer/validateResponse(_:data:)`` throws.
  open func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    try validateResponse(response as? HTTPURLResponse, data: data) { data }
    return data
  }

  /// Reads the body of an answer; nil if there is none, or a single space, as Rails sends it.
  ///
  /// If the status is not taken, what was read is left to ``Serialized``.
  func read(_ response: URLResponse?, _ data: Data?, _ read: (Data) throws -> Any?) throws -> Any? {
    func object() throws -> Any? {
      guard let data, !data.isEmpty, data != Data(" ".utf8) else { return nil }
      return try read(data)
    }
    try validateResponse(response as? HTTPURLResponse, data: data, object)
    return try object()
  }

  /// Throws if an answer is not taken, and leaves what the body stands for, unless its type is not taken.
  ///
  /// The error is thrown as it is: an override may throw one of its own.
  private func validateResponse(_ response: HTTPURLResponse?, data: Data?, _ object: () throws -> Any?) throws {
    do {
      try validateResponse(response, data: data)
    } catch {
      let failure = error as NSError
      let isAboutType = [failure, failure.userInfo[NSUnderlyingErrorKey] as? NSError].contains {
        $0?.domain == AFURLResponseSerializationErrorDomain && $0?.code == URLError.cannotDecodeContentData.rawValue
      }
      if !isAboutType, let rejected = Serialized.Rejected.current { rejected.object = try? object() }
      throw error
    }
  }

  func failure(
    _ code: URLError.Code, _ text: String, _ response: URLResponse?, _ data: Data?, _ cause: (any Error)? = nil
  ) -> NSError {
    var userInfo: [String: Any] = [NSLocalizedDescriptionKey: text]
    userInfo[NSURLErrorFailingURLErrorKey] = response?.url
    userInfo[AFNetworkingOperationFailingURLResponseErrorKey] = response
    userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
    userInfo[NSUnderlyingErrorKey] = cause
    return NSError(domain: AFURLResponseSerializationErrorDomain, code: code.rawValue, userInfo: userInfo)
  }
}

/// The result of a serializer: an object, an error, or both.
struct Serialized {
  /// What the body stands for.
  var object: Any?
  /// Why the answer is not acceptable, or its body cannot be read.
  var error: (any Error)?

  init() {}

  /// Calls a serializer.
  ///
  /// An ``AFHTTPResponseSerializer`` that throws because of the status may have an object, too.
  init(by serializer: any AFURLResponseSerialization, _ response: URLResponse?, _ data: Data?) {
    let rejected = Rejected()
    do {
      object = try Rejected.$current.withValue(rejected) { try serializer.responseObject(for: response, data: data) }
    } catch {
      object = rejected.object
      self.error = error
    }
  }

  /// What the body of an answer stands for that is not taken.
  ///
  /// Errors do not carry it: one that a program throws is passed on as it is.
  final class Rejected: @unchecked Sendable {
    // Sendable: used within one call only, by its thread.
    @TaskLocal static var current: Rejected?
    var object: Any?
  }
}

/// Reads JSON.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// How JSON is read.
  open var readingOptions: JSONSerialization.ReadingOptions = []
  /// Whether entries that are null are left out.
  open var removesKeysWithNullValues = false

  /// Makes a serializer for `application/json`, `text/json` and `text/javascript`.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/json", "text/json", "text/javascript"]
  }

  open override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    try read(response, data) { body in
      let encoding = TextEncoding(response?.textEncodingName, orElse: stringEncoding)
      // What is not in UTF-8 is made that; JSON in UTF-16 and 32 is recognized.
      guard let text = encoding.isUnicode ? body : encoding.text(body).map({ Data($0.utf8) }) else {
        throw failure(.cannotDecodeContentData, "the body is no text of \(encoding)", response, data)
      }
      do {
        let object = try JSONSerialization.jsonObject(with: text, options: readingOptions)
        return removesKeysWithNullValues ? withoutNulls(object) : object
      } catch {
        throw failure(.cannotDecodeContentData, "the body is not JSON", response, data, error)
      }
    }
  }

  private func withoutNulls(_ object: Any) -> Any {
    switch object {
    case let dictionary as [String: Any]: dictionary.filter { !($0.value is NSNull) }.mapValues(withoutNulls)
    case let array as [Any]: array.map(withoutNulls)
    default: object
    }
  }
}

/// Reads property lists.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// Makes a serializer for `application/x-plist`.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/x-plist"]
  }

  open override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    try read(response, data) { body in
      do {
        return try PropertyListSerialization.propertyList(from: body, format: nil)
      } catch {
        throw failure(.cannotDecodeContentData, "the body is not a property list", response, data, error)
      }
    }
  }
}

/// Asks several serializers, one after the other; the first that can read an answer does.
open class AFCompoundResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  // Sendable: the list does not change.

  /// Who is asked, in order.
  public let responseSerializers: [any AFURLResponseSerialization]

  /// Makes a serializer of others; if none can read an answer, the body is returned as it is.
  public init(compoundWith serializers: [any AFURLResponseSerialization]) {
    responseSerializers = serializers
    super.init()
  }

  open override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    for serializer in responseSerializers {
      let serialized = Serialized(by: serializer, response, data)
      guard let object = serialized.object else { continue }
      guard let error = serialized.error else { return object }
      // It can read the body of an answer whose status is not taken.
      Serialized.Rejected.current?.object = object
      throw error
    }
    return try super.responseObject(for: response, data: data)
  }
}
