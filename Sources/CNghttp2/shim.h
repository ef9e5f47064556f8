#pragma once

#include <nghttp2/nghttp2.h>

// Swift imports nghttp2's enums as distinct types, while the members of frames and settings are plain integers. These
// constants have the integer types of the members they are compared with.

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
// Returned by a data provider while it has no data, as ssize_t.
static const ssize_t APNS_DATA_DEFERRED = NGHTTP2_ERR_DEFERRED;
// Returned by a callback to end the session.
static const int32_t APNS_CALLBACK_FAILURE = NGHTTP2_ERR_CALLBACK_FAILURE;
// The code passed to on_invalid_frame_recv for a stream that was refused because too many are open.
static const int32_t APNS_REFUSED_STREAM = NGHTTP2_ERR_REFUSED_STREAM;
// The code passed to on_frame_not_send for a frame that is not sent because GOAWAY ended the session.
static const int32_t APNS_SESSION_CLOSING = NGHTTP2_ERR_SESSION_CLOSING;

// Accessors for members of the frame union, named after the frame type they are valid for.
static inline uint32_t apns_goaway_error_code(const nghttp2_frame *frame) { return frame->goaway.error_code; }
static inline const uint8_t *apns_ping_opaque_data(const nghttp2_frame *frame) { return frame->ping.opaque_data; }
static inline uint32_t apns_rst_stream_error_code(const nghttp2_frame *frame) { return frame->rst_stream.error_code; }
static inline int apns_is_request_headers(const nghttp2_frame *frame) {
  return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}
