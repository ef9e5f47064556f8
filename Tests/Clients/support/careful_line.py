"""The careful provider's connection: HTTP/2 by the standard, on h2, with deadlines."""

import asyncio
import json

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated, DataReceived, PingAckReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError

from support.wire import client_context


class Unprocessed(Exception):
    """The push was certainly not processed: it may be sent again unchanged."""


class Lost(Exception):
    """No response will arrive. The push may have been processed."""


class Response:
    """The response on one stream."""

    def __init__(self):
        self.finished = asyncio.get_running_loop().create_future()
        self.status = None
        self.body = b""

    @property
    def facts(self):
        """The body's JSON object; empty if the body is empty or not a JSON object."""
        try:
            facts = json.loads(self.body)
        except ValueError:
            return {}
        return facts if isinstance(facts, dict) else {}

    def end(self, error=None):
        if not self.finished.done():
            if error is None:
                self.finished.set_result(self)
            else:
                self.finished.set_exception(error)


class Framing(H2Connection):
    """An h2 connection that stays open after GOAWAY. h2 closes it, but streams up to the last one are still
    answered.
    """

    def _receive_goaway_frame(self, frame):
        received = super()._receive_goaway_frame(frame)
        self.state_machine.state = ConnectionState.CLIENT_OPEN
        return received


class Line:
    """One HTTP/2 connection that tracks whether it may be used for new streams."""

    def __init__(self, reader, writer):
        self.http = Framing(H2Configuration(header_encoding="utf-8"))
        self.usable = True  # for new streams
        self._reader, self._writer = reader, writer
        self._responses = {}
        self._settled = False
        self._last_before_settings = 0  # the last stream that was opened before the newest SETTINGS arrived
        self._changed = asyncio.Event()
        self._pong = None
        self.http.initiate_connection()
        self._flush()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls, server, deadline):
        """Returns a connection whose first SETTINGS has been received; raises an error after `deadline` seconds."""
        opening = asyncio.open_connection(
            "127.0.0.1", server.port, ssl=client_context(server.ca), server_hostname="localhost")
        line = cls(*await asyncio.wait_for(opening, deadline))
        try:
            await asyncio.wait_for(line._until(lambda: line._settled), deadline)
        except asyncio.TimeoutError:
            line.close()
            raise
        return line

    async def push(self, headers, body, deadline):
        """Waits for a free stream, sends the push, and waits for the response for `deadline` seconds."""
        await self._until(lambda: self._has_room(len(body)))
        if not self.usable:
            raise Unprocessed
        stream = self.http.get_next_available_stream_id()
        response = self._responses[stream] = Response()
        self.http.send_headers(stream, headers)
        self.http.send_data(stream, body, end_stream=True)
        self._flush()
        try:
            return await asyncio.wait_for(response.finished, deadline)
        except asyncio.TimeoutError:
            if self._responses.pop(stream, None) is None:
                raise Lost("the connection ended") from None
            self.http.reset_stream(stream, ErrorCodes.CANCEL)
            self._flush()
            self._changed.set()
            await self._probe(deadline)
            raise Lost(f"no response within {deadline} s") from None

    def retire(self):
        """Prevents new streams; open streams may still get responses."""
        self.usable = False
        self._changed.set()
        if not self._responses:
            self.close()

    def close(self):
        self._end(Lost("closed"))
        self._writer.close()
        self._reading.cancel()

    def _has_room(self, size):
        return (
            self.http.open_outbound_streams < self.http.remote_settings.max_concurrent_streams
            and self.http.outbound_flow_control_window >= size)

    async def _until(self, holds):
        while self.usable and not holds():
            self._changed.clear()
            await self._changed.wait()

    async def _probe(self, deadline):
        """Sends a PING to check that the peer is alive, and closes the line if no acknowledgement arrives."""
        if self._pong is None:
            self._pong = asyncio.get_running_loop().create_future()
            self.http.ping(b"careful!")
            self._flush()
        try:
            await asyncio.wait_for(asyncio.shield(self._pong), deadline)
        except asyncio.TimeoutError:
            self.close()

    def _flush(self):
        if (data := self.http.data_to_send()) and not self._writer.is_closing():
            self._writer.write(data)

    async def _read(self):
        why = "the server closed the connection"
        try:
            while data := await self._reader.read(65536):
                for event in self.http.receive_data(data):
                    self._handle(event)
                self._flush()
                self._changed.set()
                if not self.usable and not self._responses:
                    break
        except (OSError, ProtocolError) as error:
            why = repr(error)
        self._end(Lost(why))
        self._writer.close()

    def _handle(self, event):
        if isinstance(event, RemoteSettingsChanged):
            self._settled = True
            self._last_before_settings = self.http.highest_outbound_stream_id
        elif isinstance(event, PingAckReceived) and self._pong is not None:
            self._pong.set_result(None)
            self._pong = None
        elif isinstance(event, ConnectionTerminated):
            self.usable = False
            for stream in [stream for stream in self._responses if stream > event.last_stream_id]:
                self._responses.pop(stream).end(Unprocessed())
        elif getattr(event, "stream_id", None) in self._responses:
            self._handle_stream_event(event, self._responses[event.stream_id])

    def _handle_stream_event(self, event, response):
        if isinstance(event, ResponseReceived):
            response.status = int(dict(event.headers)[":status"])
        elif isinstance(event, DataReceived):
            response.body += event.data
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self._responses.pop(event.stream_id).end()
        elif isinstance(event, StreamReset):
            refused = event.error_code == ErrorCodes.REFUSED_STREAM
            # A stream within the announced limit is refused: this connection accepts no more streams.
            self.usable = self.usable and not (refused and event.stream_id > self._last_before_settings)
            self._responses.pop(event.stream_id).end(Unprocessed() if refused else Lost("the stream was reset"))

    def _end(self, error):
        self.usable = False
        for response in self._responses.values():
            response.end(error)
        self._responses.clear()
        self._changed.set()
