// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking

/// Creates requests from parameters.
public protocol AFURLRequestSerialization: AnyObject {
  /// Returns the request with the parameters added to it.
  ///
  /// - Throws: An error if the parameters cannot be encoded.
  func requestBySerializingRequest(_ request: URLRequest, withParameters parameters: Any?) throws -> URLRequest
}

/// Writes parameters as form data, either to the URL or as the body.
///
/// This is the class of the same name in AFNetworking 2.
open class AFHTTPRequestSerializer: AFURLRequestSerialization, @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// The encoding of bodies; the default is UTF-8.
  open var stringEncoding = String.Encoding.utf8
  /// The longest time in seconds without any data sent or received; the default is 60.
  open var timeoutInterval: TimeInterval = 60
  /// Whether cookies are stored and sent; the default is `true`.
  open var httpShouldHandleCookies = true
  /// The methods whose parameters are written to the URL; by default `GET`, `HEAD` and `DELETE`.
  open var httpMethodsEncodingParametersInURI: Set<String> = ["GET", "HEAD", "DELETE"]
  /// The headers of all requests that do not set their own; by default those that the initializer sets.
  open private(set) var httpRequestHeaders: [String: String] = [:]
  private var queryString: ((URLRequest, Any) throws -> String)?

  /// Creates a serializer whose requests specify the user's languages and the program.
  public init() {
    let languages = Locale.preferredLanguages.prefix(6).enumerated().map { index, language in
      index == 0 ? language : "\(language);q=0.\(10 - index)"
    }
    if !languages.isEmpty { setValue(languages.joined(separator: ", "), forHTTPHeaderField: "Accept-Language") }
    setValue(ProcessInfo.processInfo.processName, forHTTPHeaderField: "User-Agent")
  }

  /// Sets a header for all requests; nil removes it.
  open func setValue(_ value: String?, forHTTPHeaderField field: String) {
    httpRequestHeaders = httpRequestHeaders.filter { $0.key.lowercased() != field.lowercased() }
    httpRequestHeaders[field] = value
  }

  /// Returns a header of all requests.
  open func value(forHTTPHeaderField field: String) -> String? {
    httpRequestHeaders.first { $0.key.lowercased() == field.lowercased() }?.value
  }

  /// Sends a user name and a password with each request, using Basic authentication.
  open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
    setValue("Basic " + Data("\(username):\(password)".utf8).base64EncodedString(), forHTTPHeaderField: "Authorization")
  }

  /// Stops sending a credential.
  open func clearAuthorizationHeader() { setValue(nil, forHTTPHeaderField: "Authorization") }

  /// Sets a block that encodes the parameters; nil restores the default encoding.
  open func setQueryStringSerializationWithBlock(_ block: ((URLRequest, Any) throws -> String)?) {
    queryString = block
  }

  /// Creates a request with parameters.
  ///
  /// - Throws: `URLError.badURL`, or an error if the parameters cannot be encoded.
  open func request(withMethod method: String, urlString: String, parameters: Any?) throws -> URLRequest {
    guard let url = URL(string: urlString), url.scheme != nil else {
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: "\(urlString) is not an absolute address"])
    }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.timeoutInterval = timeoutInterval
    request.httpShouldHandleCookies = httpShouldHandleCookies
    return try requestBySerializingRequest(request, withParameters: parameters)
  }

  /// Creates a request with a multipart form as its body, whose files are read while they are sent.
  ///
  /// - Parameters:
  ///   - method: The method; `GET` and `HEAD`, which have no body, are not allowed.
  ///   - urlString: The absolute URL.
  ///   - parameters: The first parts.
  ///   - block: Called before this method returns, to add parts.
  /// - Throws: `URLError.badURL`, or the block's error.
  open func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: Any?,
    constructingBodyWith block: (any AFMultipartFormData) throws -> Void
  ) throws -> URLRequest {
    guard method != "GET", method != "HEAD" else {
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: "a request of the method \(method) has no body"])
    }
    var request = try request(withMethod: method, urlString: urlString, parameters: nil)
    let form = MultipartForm(stringEncoding)
    for pair in QueryPair.pairs(of: parameters) {
      form.appendPart(withForm: pair.data ?? pair.value.data(using: stringEncoding) ?? Data(), name: pair.name)
    }
    try block(form)
    let stream = form.stream()
    request.setValue("multipart/form-data; boundary=\(form.boundary)", forHTTPHeaderField: "Content-Type")
    request.setValue(stream.length.map { String($0) }, forHTTPHeaderField: "Content-Length")
    request.httpBodyStream = stream
    return request
  }

  /// Returns a request with the serializer's headers, and with its parameters as form data.
  ///
  /// The parameters are written to the URL for ``AFHTTPRequestSerializer/httpMethodsEncodingParametersInURI``, and are
  /// the body otherwise.
  ///
  /// - Parameters:
  ///   - request: The request, whose own headers take precedence.
  ///   - parameters: A dictionary, array or set, or nil for none.
  /// - Throws: `URLError.badURL`, or the error of the block set with
  ///   ``AFHTTPRequestSerializer/setQueryStringSerializationWithBlock(_:)``.
  open func requestBySerializingRequest(_ request: URLRequest, withParameters parameters: Any?) throws -> URLRequest {
    var request = withHeaders(request)
    guard let parameters else { return request }
    let query = try queryString?(request, parameters) ?? QueryPair.text(of: parameters)
    guard !query.isEmpty else { return request }
    if encodesInURI(request) {
      guard let url = request.url else { throw URLError(.badURL) }
      let parts = url.absoluteString.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      let joined = "\(parts[0])\(url.query == nil ? "?" : "&")\(query)" + (parts.count > 1 ? "#\(parts[1])" : "")
      guard let extended = URL(string: joined) else { throw URLError(.badURL) }
      request.url = extended
      return request
    }
    return withBody(request, query.data(using: stringEncoding), "application/x-www-form-urlencoded")
  }

  /// Whether a request's parameters are written to its URL.
  func encodesInURI(_ request: URLRequest) -> Bool {
    httpMethodsEncodingParametersInURI.contains((request.httpMethod ?? "GET").uppercased())
  }

  /// Returns the request with the headers of all requests.
  func withHeaders(_ request: URLRequest) -> URLRequest {
    var request = request
    for (name, value) in httpRequestHeaders where request.value(forHTTPHeaderField: name) == nil {
      request.setValue(value, forHTTPHeaderField: name)
    }
    return request
  }

  /// Returns the request with the headers of all requests, and with a body, whose type is set unless it has one.
  func withBody(_ request: URLRequest, _ body: Data?, _ type: String) -> URLRequest {
    var request = withHeaders(request)
    request.httpBody = body
    if request.value(forHTTPHeaderField: "Content-Type") == nil {
      request.setValue(type, forHTTPHeaderField: "Content-Type")
    }
    return request
  }
}

/// Writes parameters as a JSON body.
open class AFJSONRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// The options for writing JSON; empty by default.
  open var writingOptions: JSONSerialization.WritingOptions = []

  open override func requestBySerializingRequest(
    _ request: URLRequest, withParameters parameters: Any?
  ) throws -> URLRequest {
    guard let parameters, !encodesInURI(request) else {
      return try super.requestBySerializingRequest(request, withParameters: parameters)
    }
    // Invalid JSON objects would trap.
    guard JSONSerialization.isValidJSONObject(parameters) else {
      throw CocoaError(
        .propertyListWriteInvalid, userInfo: [NSLocalizedDescriptionKey: "the parameters cannot be written as JSON"])
    }
    let body = try JSONSerialization.data(withJSONObject: parameters, options: writingOptions)
    return withBody(request, body, "application/json")
  }
}

/// Writes parameters as a property list body.
open class AFPropertyListRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// The format to write; the default is XML.
  open var format = PropertyListSerialization.PropertyListFormat.xml

  open override func requestBySerializingRequest(
    _ request: URLRequest, withParameters parameters: Any?
  ) throws -> URLRequest {
    guard let parameters, !encodesInURI(request) else {
      return try super.requestBySerializingRequest(request, withParameters: parameters)
    }
    guard PropertyListSerialization.propertyList(parameters, isValidFor: format) else {
      throw CocoaError(
        .propertyListWriteInvalid,
        userInfo: [NSLocalizedDescriptionKey: "the parameters cannot be written as a property list"])
    }
    let body = try PropertyListSerialization.data(fromPropertyList: parameters, format: format, options: 0)
    return withBody(request, body, "application/x-plist")
  }
}
