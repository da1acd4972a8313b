"""kazoo logs in by SASL with DIGEST-MD5."""
import logging
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import InvalidACLError, KazooException, NoAuthError
from kazoo.security import make_acl

from report import call, check, equal, run

logging.basicConfig(level=logging.CRITICAL)
address = sys.argv[1]
PASSWORDS = {"bob": "secret of bob", "root": "secret of root"}


def login(user, password=None):
    options = {"mechanism": "DIGEST-MD5", "username": user, "password": password or PASSWORDS[user]}
    return KazooClient(address, timeout=9.0, sasl_options=options)


class started:
    """A client that is started, and ends with the block."""

    def __init__(self, client):
        self.client = client

    def __enter__(self):
        self.client.start(timeout=15)
        return self.client

    def __exit__(self, *_):
        self.client.stop()
        self.client.close()


@check
def user_owns_what_it_makes():
    with started(login("bob")) as zk:
        zk.create("/bobs", b"1", acl=[make_acl("sasl", "bob", all=True)])
        equal(zk.get("/bobs")[0], b"1")
        zk.create("/by-auth", b"2", acl=[make_acl("auth", "", all=True)])
        acls, _ = zk.get_acls("/by-auth")
        equal([(a.id.scheme, a.id.id) for a in acls], [("sasl", "bob")])


@check
def strangers_are_kept_out():
    with started(KazooClient(address, timeout=9.0)) as zk:
        try:
            zk.get("/bobs")
        except NoAuthError:
            pass
        else:
            raise AssertionError("read without a login")
        try:
            zk.create("/x", acl=[make_acl("auth", "", all=True)])
        except InvalidACLError:
            pass
        else:
            raise AssertionError("auth without an identity")


@check
def super_user_may_do_everything():
    with started(login("root")) as zk:
        equal(zk.get("/bobs")[0], b"1")


@check
def login_is_repeated_after_a_loss():
    with started(login("bob")) as zk:
        equal(zk.get("/bobs")[0], b"1")  # kazoo is started before it has logged in
        call("cut")
        equal(zk.retry(zk.get, "/bobs")[0], b"1")


@check
def wrong_password_is_refused():
    with started(login("bob", "secret of nobody")) as zk:
        try:
            zk.get("/")
        except KazooException:
            pass
        else:
            raise AssertionError("served with a wrong password")


run()
