// SPDX-License-Identifier: Apache-2.0

/// An HTTP client whose connections live on one run loop, from the connect to the end.
///
/// All types are nested here, so that the module adds one name to a program: ``HTTP/Client`` makes requests,
/// ``HTTP/Request`` and ``HTTP/Response`` are what is sent and received, ``HTTP/Operation`` is a request that can be
/// paused and resumed, and every function throws ``HTTP/Error``.
public enum HTTP {}
