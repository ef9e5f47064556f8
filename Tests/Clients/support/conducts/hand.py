"""An HTTP/2 connection written by hand, which can break the rules: `Manners` says which."""

import asyncio
import ssl

import hpack
from hyperframe.frame import (
    DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame,
)

from support.conducts.results import Lost, Refused, Reply, Unconnected, Untrusted
from support.wire import CANCEL, PREFACE, REFUSED_STREAM, client_context

CONNECT_DEADLINE = 1.5  # seconds, for TLS and the first SETTINGS


class HandConnection(asyncio.Protocol):
    """A connection. Unless `manners` say otherwise, it uses as many streams as SETTINGS allow, and none after GOAWAY."""

    def __init__(self, manners):
        self.manners = manners
        self.usable = True
        self.transport = None
        self._encoder, self._decoder = hpack.Encoder(), hpack.Decoder()
        self._data = b""
        self._next = 1
        self._limit = None  # MAX_CONCURRENT_STREAMS
        self._open = {}  # stream: the future of its reply
        self._replies = {}
        self._changed = asyncio.Event()

    @classmethod
    async def connect(cls, port, ca, manners):
        loop = asyncio.get_running_loop()

        async def open():
            _, connection = await loop.create_connection(
                lambda: cls(manners), "127.0.0.1", port, ssl=client_context(ca), server_hostname="localhost")
            while connection._limit is None and connection.usable:
                await connection._change()
            return connection

        try:
            connection = await asyncio.wait_for(open(), CONNECT_DEADLINE)
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(str(error)) from None
        except (OSError, asyncio.TimeoutError) as error:
            raise Unconnected(repr(error)) from None
        if not connection.usable:
            raise Unconnected("closed before SETTINGS")
        return connection

    async def send(self, request, deadline):
        """Sends a request when a stream is free, and returns its `Reply`."""
        while self.usable and len(self._open) >= (1000 if self.manners.ignores_settings else self._limit):
            await self._change()
        if not self.usable:
            raise Unconnected("the connection is not usable any more")
        stream, self._next = self._next, self._next + 2
        self._open[stream] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(self._exchange(stream, request), request.cancel_after or deadline)
            return self._replies[stream]
        except asyncio.TimeoutError:
            self._write(RstStreamFrame(stream, error_code=CANCEL))
            raise Lost("canceled") from None
        finally:
            self._open.pop(stream).cancel()
            self._changed.set()

    async def _exchange(self, stream, request):
        headers = HeadersFrame(stream, self._encoder.encode(request.fields), flags=["END_HEADERS"])
        data = DataFrame(stream, request.body, flags=["END_STREAM"])
        if request.apart:
            self._write(headers)
            await asyncio.sleep(request.apart)
            self._write(data)
        else:
            self._write(headers, data)
        await self._open[stream]

    def retire(self):
        """Opens no more streams, and closes the connection when the last one has ended."""
        self.usable = False
        self._changed.set()
        asyncio.ensure_future(self._close_when_idle())

    async def _close_when_idle(self):
        while self._open:
            await self._change()
        self.close()

    def close(self):
        if self.transport is not None:
            self.transport.close()

    async def _change(self):
        self._changed.clear()
        await self._changed.wait()

    def _write(self, *frames):
        if not self.transport.is_closing():
            self.transport.write(b"".join(frame.serialize() for frame in frames))

    # Events

    def connection_made(self, transport):
        self.transport = transport
        transport.write(PREFACE + SettingsFrame(settings={SettingsFrame.ENABLE_PUSH: 0}).serialize())

    def connection_lost(self, error):
        self.usable = False
        for reply in self._open.values():
            self._fail(reply, Lost(f"the connection ended: {error!r}"))
        self._changed.set()

    def data_received(self, data):
        self._data += data
        while len(self._data) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self._data[:9]))
            if len(self._data) < 9 + length:
                break
            frame.parse_body(memoryview(self._data[9:9 + length]))
            self._data = self._data[9 + length:]
            self._handle(frame)
        self._changed.set()

    def _handle(self, frame):
        reply = self._open.get(frame.stream_id)
        if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self._limit = frame.settings.get(SettingsFrame.MAX_CONCURRENT_STREAMS, self._limit or 100)
            self._write(SettingsFrame(flags=["ACK"]))
        elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
            self._write(PingFrame(opaque_data=frame.opaque_data, flags=["ACK"]))
        elif isinstance(frame, GoAwayFrame) and not self.manners.ignores_goaway:
            self.usable = False
            for stream in [stream for stream in self._open if stream > frame.last_stream_id]:
                self._fail(self._open[stream], Refused("GOAWAY"))
        elif isinstance(frame, HeadersFrame):
            fields = {str(name): str(value) for name, value in self._decoder.decode(frame.data)}
            self._replies[frame.stream_id] = Reply(int(fields[":status"]))
        elif isinstance(frame, DataFrame) and frame.stream_id in self._replies:
            self._replies[frame.stream_id].body += bytes(frame.data)
        elif isinstance(frame, RstStreamFrame) and reply is not None:
            self._fail(reply, Refused("REFUSED_STREAM") if frame.error_code == REFUSED_STREAM else Lost("reset"))
        if "END_STREAM" in frame.flags and reply is not None and not reply.done():
            reply.set_result(None)

    @staticmethod
    def _fail(reply, error):
        if not reply.done():
            reply.set_exception(error)
