"""kazoo over TLS. Arguments: the folder with alice.pem, bob.pem and ca.pem, and the address of a secure port."""
import logging
import sys

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from report import check, equal, run

logging.basicConfig(level=logging.CRITICAL)
folder, address = sys.argv[1:3]


def client(cert, **kwargs):
    return KazooClient(hosts=address, use_ssl=True, ca=folder + "/ca.pem", certfile=cert, keyfile=cert, keyfile_password="changeit", **kwargs)


@check
def session():
    zk = client(folder + "/alice.pem")
    zk.start(timeout=30)
    try:
        data = b"x" * 900000
        zk.create("/kazoo", data, ephemeral=True)
        equal(zk.get("/kazoo")[0], data)
    finally:
        zk.stop()
        zk.close()


@check
def no_certificate():
    zk = KazooClient(hosts=address, use_ssl=True, ca=folder + "/ca.pem", connection_retry={"max_tries": 1, "delay": 0.05})
    try:
        zk.start(timeout=2)
        raise AssertionError("connected without a certificate")
    except KazooTimeoutError:
        pass
    finally:
        zk.stop()
        zk.close()


run()
