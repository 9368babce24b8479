// SPDX-License-Identifier: Apache-2.0

/// An HTTP client that runs all of its connections on one run loop.
///
/// All types are nested in this namespace, so the module adds a single name to a program. ``HTTP/Client`` makes
/// requests, ``HTTP/Request`` and ``HTTP/Response`` are what it sends and receives, ``HTTP/Operation`` is a request
/// that can be paused and resumed, and every function throws ``HTTP/Error``.
public enum HTTP {}
