"""A client that has logged in and breaks the rules of the SSH connection protocol (RFC 4254).

usage: tricks.py PORT KEYFILE TRICK

It ends with status 0 once the server has shown what it makes of the trick: by ending the
connection, or by answering a question that was asked after it.
"""

import os
import socket
import sys
import threading

import paramiko
from paramiko.common import cMSG_CHANNEL_CLOSE, cMSG_CHANNEL_DATA, cMSG_CHANNEL_EOF

GLOBAL_REQUEST, CHANNEL_OPEN, WINDOW_ADJUST, DATA, EXTENDED, REQUEST = 80, 90, 93, 94, 95, 98
KEXINIT, IGNORE, SERVICE_REQUEST, USERAUTH_REQUEST = 20, 2, 5, 50
HUGE = 0xFFFFFFFF


def message(kind, *fields):
    """Packs numbers as uint32, bytes and words as strings, raw bytes from tuples."""
    m = paramiko.Message()
    m.add_byte(bytes([kind]))
    for f in fields:
        if isinstance(f, bool):
            m.add_boolean(f)
        elif isinstance(f, int):
            m.packet.write(f.to_bytes(4, "big"))
        elif isinstance(f, tuple):
            m.packet.write(f[0])
        else:
            m.add_string(f)
    return m


class Client:
    def __init__(self, port, key):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.t = paramiko.Transport(self.sock)
        self.t.start_client(timeout=30)
        self.t.auth_publickey("demo", paramiko.Ed25519Key(filename=key))

    def send(self, kind, *fields):
        self.t._send_message(message(kind, *fields))

    def cat(self):
        """A channel with a command that reads; the server's number of it."""
        ch = self.t.open_session(timeout=30)
        ch.exec_command("cat > /dev/null")
        return ch.remote_chanid

    def raw_open(self, number, window, packet):
        self.send(CHANNEL_OPEN, "session", number, window, packet)


def window_overflow(c):
    to = c.cat()
    for _ in range(3):
        c.send(WINDOW_ADJUST, to, HUGE)


def window_zero(c):
    # The server may not send; what it runs for us must not pile up.
    ch = c.t.open_session(window_size=0, max_packet_size=32768, timeout=30)
    ch.exec_command("yes")


def packet_sizes(c):
    for number, size in enumerate([0, 1, 8, HUGE]):
        c.raw_open(1000 + number, HUGE, size)


def packet_huge(c):
    ch = c.t.open_session(window_size=HUGE, max_packet_size=HUGE, timeout=30)
    ch.exec_command("head -c 100000000 /dev/zero")


def beyond_window(c):
    ch = c.t.open_session(timeout=30)
    ch.exec_command("exec sleep 98701")  # it does not read
    to = ch.remote_chanid
    block = bytes(32000)
    for _ in range(4000):  # 128 MB; the window is far smaller
        c.send(DATA, to, block)


def unknown_channel(c):
    for kind, fields in [
        (WINDOW_ADJUST, (4242, 1)), (DATA, (4242, b"x")), (REQUEST, (4242, "exec", True, "id")),
        (96, (4242,)), (97, (4242,)), (99, (4242,)), (100, (4242,)), (91, (4242, 1, 1, 1)), (92, (4242, 1, "no", "")),
    ]:
        c.send(kind, *fields)


def after_eof(c):
    to = c.cat()
    c.send(96, to)
    c.send(96, to)
    c.send(DATA, to, b"late")
    c.send(97, to)
    c.send(97, to)
    c.send(DATA, to, b"later")


def extended_codes(c):
    to = c.cat()
    for code in (0, 1, 2, HUGE):
        c.send(EXTENDED, to, code, b"to nobody" * 1000)


def open_flood(c):
    for number in range(5000):
        c.raw_open(number, HUGE, 32768)


def global_flood(c):
    body = "n" * 30000
    for _ in range(3000):
        c.send(GLOBAL_REQUEST, body, True)


def request_flood(c):
    to = c.cat()
    for _ in range(3000):
        c.send(REQUEST, to, "env", True, "LC_X", "v" * 30000)


def kex_flood(c):
    for _ in range(50):
        c.send(KEXINIT, (os.urandom(16),), *["none"] * 10, False, 0)


def other_algorithms(c):
    c.send(KEXINIT, (os.urandom(16),), *["," * 30000] * 10, True, HUGE)


def service_again(c):
    c.send(SERVICE_REQUEST, "ssh-userauth")
    c.send(USERAUTH_REQUEST, "root", "ssh-connection", "none")
    c.send(USERAUTH_REQUEST, "demo", "ssh-connection", "password", False, "x" * 30000)


def every_number(c):
    for kind in list(range(1, 20)) + list(range(21, 50)) + list(range(53, 256)):
        c.send(kind, (os.urandom(kind),))


def lengths(c):
    to = c.cat()
    c.send(REQUEST, to, (b"\xff\xff\xff\xffexec",))
    c.send(DATA, to, 5, (b"short",))
    c.send(DATA, to, HUGE, (b"short",))
    c.send(CHANNEL_OPEN, (b"\x00\x00\xff\xffsession",))
    c.send(GLOBAL_REQUEST, (b"\x7f",))


def ignore_flood(c):
    for _ in range(30000):
        c.send(IGNORE, "x" * 100)


def half_packet(c):
    c.sock.sendall(os.urandom(7))
    c.sock.shutdown(socket.SHUT_WR)


TRICKS = [
    window_overflow, window_zero, packet_sizes, packet_huge, beyond_window, unknown_channel, after_eof, extended_codes, open_flood,
    global_flood, request_flood, kex_flood, other_algorithms, service_again, every_number, lengths, ignore_flood, half_packet,
]


def main():
    port, key, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    if name == "list":
        print("\n".join(f.__name__ for f in TRICKS))
        return
    paramiko.util.get_logger("paramiko").addHandler(__import__("logging").NullHandler())
    threading.excepthook = lambda args: None
    c = Client(port, key)
    trick = {f.__name__: f for f in TRICKS}[name]
    try:
        trick(c)
    except (OSError, EOFError, paramiko.SSHException):
        print("ended")  # by the server, in the middle of it
        return
    try:
        c.t.global_request("keepalive@openssh.com", wait=True)
    except (OSError, EOFError, paramiko.SSHException):
        pass
    print("goes on" if c.t.is_active() else "ended")
    c.sock.close()


main()
