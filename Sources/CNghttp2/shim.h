#pragma once

#include <nghttp2/nghttp2.h>

// nghttp2's enums import into Swift as types of their own, while the members of frames and settings are plain integers.
// These constants carry the few values we compare under the integer type of the member they are compared with.

static const uint8_t APNS_FRAME_DATA = NGHTTP2_DATA;
static const uint8_t APNS_FRAME_HEADERS = NGHTTP2_HEADERS;
static const uint8_t APNS_FRAME_RST_STREAM = NGHTTP2_RST_STREAM;
static const uint8_t APNS_FRAME_SETTINGS = NGHTTP2_SETTINGS;
static const uint8_t APNS_FRAME_PING = NGHTTP2_PING;
static const uint8_t APNS_FRAME_GOAWAY = NGHTTP2_GOAWAY;
static const uint8_t APNS_FRAME_CONTINUATION = NGHTTP2_CONTINUATION;

static const uint8_t APNS_FLAG_END_STREAM = NGHTTP2_FLAG_END_STREAM;
static const uint8_t APNS_FLAG_END_HEADERS = NGHTTP2_FLAG_END_HEADERS;
static const uint8_t APNS_FLAG_PADDED = NGHTTP2_FLAG_PADDED;
static const uint8_t APNS_FLAG_PRIORITY = NGHTTP2_FLAG_PRIORITY;
static const uint8_t APNS_FLAG_ACK = NGHTTP2_FLAG_ACK;

static const int32_t APNS_SETTING_HEADER_TABLE_SIZE = NGHTTP2_SETTINGS_HEADER_TABLE_SIZE;
static const int32_t APNS_SETTING_MAX_CONCURRENT_STREAMS = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS;
static const int32_t APNS_SETTING_INITIAL_WINDOW_SIZE = NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE;
static const int32_t APNS_SETTING_MAX_FRAME_SIZE = NGHTTP2_SETTINGS_MAX_FRAME_SIZE;
static const int32_t APNS_SETTING_MAX_HEADER_LIST_SIZE = NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE;
static const int32_t APNS_SETTING_ENABLE_PUSH = NGHTTP2_SETTINGS_ENABLE_PUSH;

static const uint8_t APNS_NV_NONE = NGHTTP2_NV_FLAG_NONE;
static const uint8_t APNS_NV_NO_INDEX = NGHTTP2_NV_FLAG_NO_INDEX;

static const uint32_t APNS_DATA_FLAG_EOF = NGHTTP2_DATA_FLAG_EOF;
// What a data provider returns while it has nothing to give: its type is ssize_t.
static const ssize_t APNS_DATA_DEFERRED = NGHTTP2_ERR_DEFERRED;
// What a callback returns to end the session.
static const int32_t APNS_CALLBACK_FAILURE = NGHTTP2_ERR_CALLBACK_FAILURE;
// What on_invalid_frame_recv is told of a stream that was not opened because there are too many.
static const int32_t APNS_REFUSED_STREAM = NGHTTP2_ERR_REFUSED_STREAM;
// What on_frame_not_send is told of what is not said because GOAWAY ended the session.
static const int32_t APNS_SESSION_CLOSING = NGHTTP2_ERR_SESSION_CLOSING;

// A union member: Swift reads it, but only through the frame's own type; named here so that each use says which.
static inline uint32_t apns_goaway_error_code(const nghttp2_frame *frame) { return frame->goaway.error_code; }
static inline const uint8_t *apns_ping_opaque_data(const nghttp2_frame *frame) { return frame->ping.opaque_data; }
static inline uint32_t apns_rst_stream_error_code(const nghttp2_frame *frame) { return frame->rst_stream.error_code; }
static inline int apns_is_request_headers(const nghttp2_frame *frame) {
  return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}
