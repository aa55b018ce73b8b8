extension SecureOrigin {
    /// Prints its ports as JSON, and serves until it is killed or its parent is gone.
    static let script = #"""
        import ctypes, json, os, socket, ssl, struct, sys, threading, time
        import h2.config, h2.connection, h2.events
        folder = sys.argv[1]

        def context(name, protocols):
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.load_cert_chain(f"{folder}/{name}.pem", f"{folder}/{name}.key")
            made.set_alpn_protocols(protocols)
            return made

        def reset(raw):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(raw.detach())

        def head(length, status="200 OK", more=""):
            return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{more}\r\n".encode()

        def ticket(conn):
            # One more ticket, while nothing is asked: behind the object's type, its count and its socket stands OpenSSL's.
            session = ctypes.c_void_p.from_address(id(conn._sslobj) + 24)
            library = ctypes.CDLL("libssl.so.3")
            sent = library.SSL_new_session_ticket(session) == 1 and library.SSL_do_handshake(session) == 1
            # A test that can't have its ticket is to fail.
            if not sent: conn.sendall(b"x" * 20000)

        def wait(conn):
            try:
                while conn.recv(65536): pass
            except OSError: pass

        def http1(conn, path):
            body = b"x" * 5000
            if path == "/ok": conn.sendall(head(1000) + body[:1000]); return True
            if path == "/404": conn.sendall(head(0, "404 No")); return True
            if path == "/503": conn.sendall(head(0, "503 No", "Retry-After: 0\r\n")); return True
            if path == "/loop": conn.sendall(head(0, "302 Go", "Location: /loop\r\n")); return True
            if path == "/away": conn.sendall(head(0, "302 Go", "Location: http://10.255.255.1/\r\n")); return True
            if path == "/ticket": conn.sendall(head(1000) + body[:1000]); time.sleep(0.05); ticket(conn); return True
            if path == "/late-large": conn.sendall(head(1000) + body[:1000]); time.sleep(0.05); conn.sendall(body * 4); return True
            if path == "/late": conn.sendall(head(1000) + body[:1000]); time.sleep(0.05); conn.sendall(body[:500]); return True
            if path == "/farewell": conn.sendall(head(1000) + body[:1000]); time.sleep(0.05); conn.unwrap()
            elif path == "/last": conn.sendall(head(1000) + body[:1000]); time.sleep(0.05); conn.sendall(body[:500])
            elif path == "/short": conn.sendall(head(9000) + body); conn.unwrap()
            elif path == "/dropped": conn.sendall(head(9000) + body)
            elif path == "/chunks": conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n")
            elif path == "/badchunk": conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxxxxx\r\n")
            elif path == "/reset": conn.sendall(head(9000) + body); time.sleep(0.05); reset(conn)
            elif path == "/stall": conn.sendall(head(9000) + body); wait(conn)
            elif path == "/silent": wait(conn)
            elif path == "/large": conn.sendall(head(1 << 40) + body); wait(conn)
            elif path == "/garbage": conn.sendall(b"\x01\x02 not HTTP\r\n\r\n")
            elif path == "/plain":
                conn.sendall(head(9000) + body[:100])
                os.write(conn.fileno(), b"this is not a record of TLS at all")
                wait(conn)
            elif path == "/headers":
                conn.sendall(b"HTTP/1.1 200 OK\r\n" + b"X-Filler: x\r\n" * 20000 + b"\r\n")
            return False

        def serve1(conn):
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    more = conn.recv(65536)
                    if not more: return
                    data += more
                request, data = data.split(b"\r\n\r\n", 1)
                if not http1(conn, request.split(b" ")[1].decode()): return

        def answer(h, stream, path, conn):
            def headers(status="200", length=None, end=False, more=[]):
                fields = [(":status", status)] + more
                if length is not None: fields.append(("content-length", str(length)))
                h.send_headers(stream, fields, end_stream=end)
            if path == "/ok": headers(length=1000); h.send_data(stream, b"x" * 1000, end_stream=True)
            elif path == "/404": headers("404", 0, True)
            elif path == "/429": headers("429", 0, True, [("retry-after", "0")])
            elif path == "/503": headers("503", 0, True)
            elif path == "/loop": headers("302", 0, True, [("location", "/loop")])
            elif path == "/file": headers("302", 0, True, [("location", "file:///etc/passwd")])
            elif path == "/goaway": h.close_connection(0, last_stream_id=0); return False
            elif path == "/goaway-error": h.close_connection(2, last_stream_id=stream); return False
            elif path == "/goaway-late": headers(length=9000); h.send_data(stream, b"x" * 100); h.close_connection(2, last_stream_id=stream); return False
            elif path == "/reset": h.reset_stream(stream, 2)
            elif path == "/cancel": h.reset_stream(stream, 8)
            elif path == "/calm": h.reset_stream(stream, 11)
            elif path == "/reset-late": headers(length=9000); h.send_data(stream, b"x" * 100); h.reset_stream(stream, 2)
            elif path == "/short": headers(length=9000); conn.sendall(h.data_to_send()); conn.sendall(frame(0, 1, stream, b"x" * 100))
            elif path == "/long": headers(length=10); conn.sendall(h.data_to_send()); conn.sendall(frame(0, 1, stream, b"x" * 100))
            elif path == "/cut": headers(length=9000); h.send_data(stream, b"x" * 100); conn.sendall(h.data_to_send()); return False
            elif path == "/noanswer": return False
            elif path == "/stall": headers(length=9000); h.send_data(stream, b"x" * 100)
            elif path == "/silent": pass
            elif path == "/large": headers(length=1 << 40); h.send_data(stream, b"x" * 100)
            elif path == "/flood": headers(); flood(h, stream, conn)
            elif path == "/badframe": conn.sendall(frame(0, 0, 0, b"data on stream 0")); time.sleep(0.2)
            elif path == "/hugeframe": conn.sendall(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 1000); time.sleep(0.2)
            elif path == "/badheaders": conn.sendall(frame(1, 4, stream, b"\xff\xff\xff\xff\xff\xff\xff")); time.sleep(0.2)
            elif path == "/headers": headers(more=[(f"x-filler-{i}", "x" * 1000) for i in range(120)])
            elif path == "/gzip": headers(length=3, more=[("content-encoding", "gzip")]); h.send_data(stream, b"abc", end_stream=True)
            elif path == "/plain": os.write(conn.fileno(), b"this is not a record of TLS at all"); time.sleep(0.2); return False
            return True

        def frame(kind, flags, stream, payload):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

        def flood(h, stream, conn):
            for _ in range(4000):
                room = h.local_flow_control_window(stream)
                if room < 16384:
                    conn.sendall(h.data_to_send())
                    for event in h.receive_data(conn.recv(65536)): pass
                    continue
                h.send_data(stream, b"x" * 16384)
                conn.sendall(h.data_to_send())

        def part(conn):
            # What the other side has still to say is read: a close before that would be a reset, if it came first.
            conn.shutdown(socket.SHUT_WR)
            conn.settimeout(5)
            wait(conn)

        def serve2(conn):
            h = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, validate_outbound_headers=False))
            h.initiate_connection()
            conn.sendall(h.data_to_send())
            while data := conn.recv(65536):
                for event in h.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        path = dict(event.headers).get(b":path") or dict(event.headers).get(":path")
                        goes_on = answer(h, event.stream_id, path if isinstance(path, str) else path.decode(), conn)
                        conn.sendall(h.data_to_send())
                        if not goes_on: return part(conn)
                conn.sendall(h.data_to_send())

        def secure(name, protocols, serve):
            made = context(name, protocols)
            def handle(raw):
                conn = made.wrap_socket(raw, server_side=True, suppress_ragged_eofs=True)
                try: serve(conn)
                finally: conn.close()
            return handle

        def old(raw):
            made = context("good", ["http/1.1"])
            made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1
            made.wrap_socket(raw, server_side=True)

        def cut(raw): raw.recv(65536); raw.sendall(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76"); raw.close()
        def nonsense(raw): raw.recv(65536); raw.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"); raw.close()

        kinds = {
            "good": secure("good", ["http/1.1"], serve1), "expired": secure("expired", ["http/1.1"], serve1),
            "wrong": secure("wrong", ["http/1.1"], serve1), "own": secure("own", ["http/1.1"], serve1),
            "h2": secure("good", ["h2"], serve2), "closed": lambda raw: raw.close(), "nonsense": nonsense, "cut": cut,
            "silent": wait, "old": old,
        }

        def guarded(handle, raw):
            try: handle(raw)
            except Exception: pass
            finally: raw.close()

        def accept(listener, handle):
            while True:
                raw, _ = listener.accept()
                threading.Thread(target=guarded, args=(handle, raw), daemon=True).start()

        ports = {}
        for name, handle in kinds.items():
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            ports[name] = listener.getsockname()[1]
            threading.Thread(target=accept, args=(listener, handle), daemon=True).start()
        print(json.dumps(ports), flush=True)
        parent = os.getppid()
        while os.getppid() == parent: time.sleep(0.5)
        """#
}
